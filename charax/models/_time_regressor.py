"""The plain Neural ODEs that learned characteristics are compared with."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import PlainField, Timed
from charax.models._regressor import DEFAULT_PDE_SOLVER, AbstractRegressor, RegressionResult, succeeded
from charax.models._scaling import Scaling
from charax.nn import Network, mlp, split_key
from charax.solve import Solver


class TimeRegressor(AbstractRegressor):
    """A plain Neural ODE over time at every position: u(x, t) = u₀(x) + ∫₀ᵗ NN(x, τ) dτ.

    Without a network for u₀ it starts at 0, whatever the data: that is the paper's baseline. With one it is the fair
    baseline.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import Scaling, TimeRegressor

    paper = TimeRegressor.build(Scaling.identity(1, 1), width=8, fair=False, key=jax.random.key(0))
    assert paper(jnp.ones((3, 1)), jnp.zeros(3)).u.tolist() == [[0.0]] * 3
    ```
    """

    initial: Network | None
    """The network of u₀; None for 0."""
    field: Timed
    """The network of ∂u/∂t."""
    scaling: Scaling = eqx.field(static=True)
    """The units of the data."""

    @classmethod
    def build(cls, scaling: Scaling, *, width: int, fair: bool, key: PRNGKeyArray) -> "TimeRegressor":
        """Build a regressor with one hidden layer for u₀ and two for ∂u/∂t.

        Args:
            scaling: The units of the data.
            width: The width of the hidden layers.
            fair: Whether to learn u₀.
            key: Random key of the initial weights.

        Returns:
            The regressor.
        """
        initial_key, key = split_key(key)
        d, n = scaling.dim, scaling.values
        initial = mlp([d, width, n], key=initial_key) if fair else None
        field = PlainField(mlp([1 + d, width, width, n], key=key), reads=("context",))
        return cls(initial=initial, field=Timed(field), scaling=scaling)

    def __call__(
        self, x: Float[Array, "points d"], t: Float[Array, "points"], *, solver: Solver | None = None
    ) -> RegressionResult:
        position, time = self.scaling.scale_position(x), t[:, None] / self.scaling.time
        zero = self.scaling.scale_value(jnp.zeros((x.shape[0], self.scaling.values), x.dtype))
        start = zero if self.initial is None else self.initial(position)
        context = jnp.concatenate([time, position], axis=1)
        solution = (solver or DEFAULT_PDE_SOLVER).solve(self.field, start, context=context)
        u = self.scaling.unscale_value(solution.u)
        return RegressionResult(u, x, jnp.ones_like(t), succeeded(solution), solution)

    def characteristics(
        self, starts: Float[Array, "starts d"], times: Float[Array, "times"]
    ) -> Float[Array, "times starts d"]:
        return jnp.broadcast_to(starts, (len(times), *starts.shape))  # positions do not change
