"""Data parallelism: every device has all parameters and its share of each batch."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from charax.train._task import Batch


class Devices:
    """All local devices.

    ```python
    import numpy as np
    from charax.train import Devices

    assert Devices().share(np.ones((8, 3))).shape == (8, 3)
    ```
    """

    def __init__(self):
        self.number = jax.local_device_count()
        mesh = Mesh(np.asarray(jax.local_devices()), ("batch",))
        self._whole, self._parts = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("batch"))

    def check(self, batch_size: int) -> None:
        """Raise if a batch cannot be shared evenly."""
        if batch_size % self.number:
            raise ValueError(
                f"batches of {batch_size} cannot be shared by {self.number} devices: give a batch_size that is a "
                f"multiple of {self.number}"
            )

    def share(self, batch: Batch) -> Batch:
        """A batch with each device's share on it."""
        return jax.device_put(batch, self._parts)

    def copy(self, tree: PyTree) -> PyTree:
        """A tree with a copy on every device."""
        return jax.device_put(tree, self._whole)
