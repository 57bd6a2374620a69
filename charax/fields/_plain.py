"""The field of a plain neural ODE."""

from collections.abc import Iterable

import equinox as eqx
from jaxtyping import Array, Float

from charax.fields._field import AbstractField
from charax.fields._reads import Condition, Read, Time, apply_to_inputs, as_reads
from charax.nn import Network


class PlainField(AbstractField):
    """du/ds = f(s, u): one network and no characteristic.

    ```python
    import jax
    from charax.fields import PlainField
    from charax.nn import mlp

    field = PlainField(mlp([3, 32, 2], key=jax.random.key(0)), reads=("s", "u"))
    assert field.characteristic_dim == 0
    ```
    """

    network: Network
    reads_in_order: tuple[Read, ...] = eqx.field(static=True)

    def __init__(self, network: Network, *, reads: Iterable[str] = ("s", "u")):
        """Take a network as the field.

        Args:
            network: Maps its inputs, joined along the last axis, to du/ds.
            reads: The inputs of the network: any of "s", "u", "u0" and "context".

        Raises:
            ValueError: If `reads` is empty, unknown, or contains "x".
        """
        self.network = network
        self.reads_in_order = as_reads(reads)
        if "x" in self.reads_in_order:
            raise ValueError('a plain field has no characteristic: leave "x" out of reads, or use CharacteristicField')

    @property
    def characteristic_dim(self) -> int:
        return 0

    @property
    def reads(self) -> frozenset[Read]:
        return frozenset(self.reads_in_order)

    def __call__(
        self,
        s: Time,
        x: Float[Array, "batch k"] | None,
        u: Float[Array, "batch *state"],
        z: Condition,
    ) -> tuple[None, Float[Array, "batch *derivative"]]:
        return None, apply_to_inputs(self.network, self.reads_in_order, s, x, u, z)
