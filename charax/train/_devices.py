"""Data parallelism: every device holds all parameters and its share of each mini-batch."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int, PyTree

from charax.train._batches import Batch

_AXIS = "batch"


class Devices:
    """All devices of all processes that train together, as one mesh over the batch.

    ```python
    import numpy as np
    from charax.train import Devices

    assert Devices().take(np.ones((8, 3)), np.arange(4)).shape == (4, 3)
    ```
    """

    def __init__(self, *, local: bool = False, most: int | None = None):
        """Find the devices.

        Args:
            local: Only those of this process.
            most: Only so many of them; all if left out.
        """
        found = (jax.local_devices() if local else jax.devices())[:most]
        self.count = len(found)
        self._are_cores = len(found) > 1 and found[0].platform == "cpu"
        self._is_local = all(device.process_index == jax.process_index() for device in found)
        mesh = Mesh(np.asarray(found), (_AXIS,))
        self.replicated = NamedSharding(mesh, PartitionSpec())
        self._sharded = NamedSharding(mesh, PartitionSpec(_AXIS))
        self._sharded_steps = NamedSharding(mesh, PartitionSpec(None, _AXIS))

    @property
    def share_memory(self) -> bool:
        """Whether they are several cores of this machine."""
        return self._is_local and self._are_cores

    @property
    def is_shared(self) -> bool:
        """Whether some of the devices are those of other processes."""
        return not self._is_local

    def check(self, batch_size: int) -> None:
        """Refuse a batch size that the devices cannot share evenly.

        Args:
            batch_size: Samples per mini-batch.

        Raises:
            ValueError: If it is not a multiple of the number of devices.
        """
        if batch_size % self.count:
            raise ValueError(
                f"mini-batches of {batch_size} cannot be shared by {self.count} devices: give a batch_size that is a "
                f"multiple of {self.count}"
            )

    def share(self, order: Int[np.ndarray, "*steps batch"]) -> Int[np.ndarray, "*steps share"]:
        """The rows of the devices of this process.

        Args:
            order: The rows of mini-batches.

        Returns:
            This process's share of each.
        """
        shares = self._sharded.addressable_devices_indices_map(order.shape[-1:]).values()
        bounds = [share[0].indices(order.shape[-1]) for share in shares if share is not None]
        return order[..., min(start for start, _, _ in bounds) : max(stop for _, stop, _ in bounds)]

    def assemble(self, share: Batch) -> Batch:
        """Make one mini-batch of the shares of all processes.

        Args:
            share: The samples of this process.

        Returns:
            The samples of all of them, as arrays over all devices.
        """
        if self._is_local:
            return jax.device_put(share, self._sharded)
        return jax.tree.map(lambda leaf: jax.make_array_from_process_local_data(self._sharded, leaf), share)

    def take(self, split: Batch, rows: Int[np.ndarray, "batch"]) -> Batch:
        """Put each device's share of some samples on it. A process reads the rows of its own devices only.

        Args:
            split: Arrays with the samples in their first axis.
            rows: The samples.

        Returns:
            The samples as arrays over all devices.
        """
        share = self.share(rows)
        return self.assemble(jax.tree.map(lambda leaf: leaf[share], split))

    def average(self, function: Callable[..., PyTree]) -> Callable[..., PyTree]:
        """Let every device compute with its share of a mini-batch, and average the results in one exchange.

        Without it, the compiler exchanges what is summed over samples where it is summed: every array of a gradient by
        itself, and in every step of a solver.

        Args:
            function: A function of parameters, a mini-batch and a random key whose results are means over the samples.

        Returns:
            The same function of the whole mini-batch, for `jit`.
        """
        if self.count == 1:
            return function

        def own(params: PyTree, batch: Batch, key: Any) -> PyTree:
            vector, unravel = ravel_pytree(function(params, batch, key))
            return unravel(lax.pmean(vector, _AXIS))

        shares = (self.replicated.spec, self._sharded.spec, self.replicated.spec)
        # The results are the same on every device: a check of that would exchange the gradient early again.
        return jax.shard_map(
            own, mesh=self.replicated.mesh, in_specs=shares, out_specs=self.replicated.spec, check_vma=False
        )

    def shard_rows(self, order: Int[np.ndarray, "steps batch"]) -> Int[Array | np.ndarray, "steps batch"]:
        """Put each device's share of the row indices on it.

        Args:
            order: The rows of every step.

        Returns:
            The same array, sharded along the mini-batch. One device gets it faster by the call of the program.
        """
        return order if self.count == 1 else jax.device_put(order, self._sharded_steps)

    def replicate(self, tree: PyTree) -> PyTree:
        """Copy arrays, which are the same in every process, to every device.

        Args:
            tree: Arrays.

        Returns:
            The same arrays, replicated.
        """
        if self._is_local:
            return jax.device_put(tree, self.replicated)

        def replicate(leaf: Any) -> jax.Array:
            array = np.asarray(leaf)
            return jax.make_array_from_callback(array.shape, self.replicated, lambda index: array[index])

        return jax.tree.map(replicate, tree)

    def localize(self, tree: PyTree) -> PyTree:
        """Copy replicated arrays to one device of this process, where it may compute with them alone.

        Args:
            tree: Arrays, replicated.

        Returns:
            The same arrays, on one device.
        """
        return tree if self.count == 1 else jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), tree)
