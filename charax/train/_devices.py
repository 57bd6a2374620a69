"""Data parallelism: every device holds all parameters and its share of each mini-batch."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Int, PyTree

from charax.train._batches import Batch


class Devices:
    """All local devices, as one mesh over the batch.

    ```python
    import numpy as np
    from charax.train import Devices

    assert Devices().shard(np.ones((8, 3))).shape == (8, 3)
    ```
    """

    def __init__(self):
        self.count = jax.local_device_count()
        mesh = Mesh(np.asarray(jax.local_devices()), ("batch",))
        self._replicated = NamedSharding(mesh, PartitionSpec())
        self._sharded = NamedSharding(mesh, PartitionSpec("batch"))
        self._sharded_steps = NamedSharding(mesh, PartitionSpec(None, "batch"))

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

    def shard(self, batch: Batch) -> Batch:
        """Put each device's share of a mini-batch on it.

        Args:
            batch: Arrays with the samples in their first axis.

        Returns:
            The same arrays, sharded.
        """
        return jax.device_put(batch, self._sharded)

    def shard_rows(self, order: Int[np.ndarray, "steps batch"]) -> Int[jax.Array, "steps batch"]:
        """Put each device's share of the row indices on it.

        Args:
            order: The rows of every step.

        Returns:
            The same array, sharded along the mini-batch.
        """
        return jax.device_put(order, self._sharded_steps)

    def replicate(self, tree: PyTree) -> PyTree:
        """Copy arrays to every device.

        Args:
            tree: Arrays.

        Returns:
            The same arrays, replicated.
        """
        return jax.device_put(tree, self._replicated)
