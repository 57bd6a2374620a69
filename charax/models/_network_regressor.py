"""A network of (x, t), without any equation: what learned characteristics must be better than."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.models._regressor import AbstractRegressor, RegressionResult
from charax.models._scaling import Scaling
from charax.nn import Network, mlp
from charax.solve import Solver


class NetworkRegressor(AbstractRegressor):
    """u(x, t) as a perceptron of x and t.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import NetworkRegressor, Scaling

    model = NetworkRegressor.build(Scaling.identity(1, 1), width=8, key=jax.random.key(0))
    assert model(jnp.ones((3, 1)), jnp.ones(3)).u.shape == (3, 1)
    ```
    """

    network: Network
    """The network of u, in scaled units."""
    scaling: Scaling = eqx.field(static=True)
    """The units of the data."""

    @classmethod
    def build(cls, scaling: Scaling, *, width: int, key: PRNGKeyArray) -> "NetworkRegressor":
        """Build a regressor with two hidden layers.

        Args:
            scaling: The units of the data.
            width: The width of the hidden layers.
            key: Random key of the initial weights.

        Returns:
            The regressor.
        """
        network = mlp([scaling.dim + 1, width, width, scaling.values], key=key)
        return cls(network=network, scaling=scaling)

    def __call__(
        self, x: Float[Array, "points d"], t: Float[Array, "points"], *, solver: Solver | None = None
    ) -> RegressionResult:
        inputs = jnp.concatenate([self.scaling.scale_position(x), t[:, None] / self.scaling.time], axis=1)
        u = self.scaling.unscale_value(self.network(inputs))
        return RegressionResult(u, x, jnp.ones_like(t), jnp.isfinite(u).all(axis=1), None)

    def characteristics(
        self, starts: Float[Array, "starts d"], times: Float[Array, "times"]
    ) -> Float[Array, "times starts d"]:
        return jnp.broadcast_to(starts, (len(times), *starts.shape))  # positions do not change
