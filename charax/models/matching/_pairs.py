"""Maps that are learned from pairs by flow matching."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractField, CharacteristicField, JointJacobian, NetworkVelocity, PlainField
from charax.models.matching._matching import FlowMatching
from charax.nn import mlp, split_key
from charax.solve import Solver


class PairMap(eqx.Module):
    """A map from x to y along the solution of an ODE that begins at x and ends at y.

    The paths of two pairs may cross. A plain field has one velocity at the crossing and learns their mean; a
    characteristic one, whose velocity reads u0, has one for each. Straight paths have a constant velocity, so that such
    a field comes close to one residual step, x + f(x).

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models.matching import FlowMatching, PairMap

    model = PairMap.build("c-node", 2, 1, hidden=(8, 8), key=jax.random.key(0))
    x, y = jnp.ones((5, 2)), jnp.zeros((5, 1))
    assert model(x).shape == (5, 1)
    assert model.match(x, y, FlowMatching(), key=jax.random.key(1)).shape == (5,)
    ```
    """

    field: AbstractField
    inputs: int = eqx.field(static=True)
    outputs: int = eqx.field(static=True)

    @classmethod
    def build(
        cls,
        method: str,
        inputs: int,
        outputs: int,
        *,
        hidden: Sequence[int] = (64, 64),
        characteristic_dim: int = 8,
        key: PRNGKeyArray,
    ) -> "PairMap":
        """Build a map with random weights.

        Args:
            method: "node" for a plain field of (s, u), "c-node" for a characteristic one whose velocity reads u0, too.
            inputs: The number of columns of x.
            outputs: The number of columns of y. The shorter one of the two is padded with zeros.
            hidden: The widths of the hidden layers of every network.
            characteristic_dim: The number k of characteristic dimensions.
            key: Random key of the initial weights.

        Returns:
            The map.

        Raises:
            ValueError: If the method is another one.
        """
        n = max(inputs, outputs)
        first, second, third = split_key(key, 3)
        if method == "node":
            return cls(PlainField(mlp([1 + n, *hidden, n], activation="silu", key=first)), inputs, outputs)
        if method != "c-node":
            raise ValueError(f"pairs are matched by node or c-node, not by {method!r}")
        velocity = mlp([1 + 2 * n, *hidden, characteristic_dim], activation="silu", key=first)
        field = CharacteristicField(
            NetworkVelocity(velocity, characteristic_dim, reads=("s", "u", "u0")),
            JointJacobian(
                mlp([n, *hidden], activation="silu", final="silu", key=second),
                hidden=hidden[-1],
                channels=n,
                characteristic_dim=characteristic_dim,
                key=third,
            ),
        )
        return cls(field, inputs, outputs)

    def __call__(
        self, x: Float[Array, "batch inputs"], *, solver: Solver | None = None
    ) -> Float[Array, "batch outputs"]:
        """Map a batch.

        Args:
            x: The rows to map.
            solver: How to integrate; `Solver()` by default.

        Returns:
            The rows that they are mapped to; NaN where the solve failed.
        """
        return (solver or Solver()).solve(self.field, self._pad(x)).u[:, : self.outputs]

    def match(
        self,
        x: Float[Array, "batch inputs"],
        y: Float[Array, "batch outputs"],
        matching: FlowMatching,
        *,
        key: PRNGKeyArray,
    ) -> Float[Array, "batch"]:
        """Compute the loss of flow matching for pairs. Nothing is solved.

        Args:
            x: Where the paths begin.
            y: Where they end.
            matching: Paths and times.
            key: Random key of the times.

        Returns:
            The loss of every pair.
        """
        return matching.losses(self.field, self._pad(x), self._pad(y), key=key)

    def _pad(self, rows: Float[Array, "batch columns"]) -> Float[Array, "batch state"]:
        return jnp.pad(rows, ((0, 0), (0, max(self.inputs, self.outputs) - rows.shape[1])))
