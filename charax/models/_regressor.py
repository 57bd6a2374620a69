"""The interface of regressors of u(x, t), their result, and what they share."""

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from charax.models._scaling import Scaling
from charax.nn import Chain, mlp, summarize
from charax.nn._parameters import count
from charax.solve import Outcome, Solution, Solver

DEFAULT_PDE_SOLVER = Solver("midpoint", steps=6)
"""The default solver of regressors, as accurate as their networks."""

DEFAULT_EQUATION_SOLVER = Solver("bosh3", steps=12)
"""The default solver of learned equations, whose coefficients would make up for errors of the solver: with half as many
steps the logistic source 2u - 2u² got a cubic term. Steps cost little beside their compilation, stages do not."""

_MIN_DETERMINANT = 0.25
"""Below this determinant neighbouring characteristics are penalised: they contracted to a quarter of their distance."""


class RegressionResult(eqx.Module):
    """The values at some points, and the characteristics that lead there.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import Scaling, build_regressor

    model = build_regressor("c-node", Scaling.identity(1, 1), width=4, key=jax.random.key(0))
    result = model(jnp.ones((3, 1)), jnp.ones(3))
    assert result.u.shape == result.foot_point.shape == (3, 1) and result.found.all()
    ```
    """

    u: Float[Array, "points n"]
    """The value at every point."""
    foot_point: Float[Array, "points d"]
    """Where the characteristic through the point starts at t = 0."""
    jacobian_determinant: Float[Array, "points"]
    """det ∂x/∂ξ of the map from foot points ξ to positions x at time t; at 0 neighbouring characteristics cross."""
    found: Bool[Array, "points"]
    """False where the root finder found no foot point or the solve failed: u is meaningless there."""
    solution: Solution | None
    """The solution along the characteristics; None if nothing was integrated."""


class AbstractRegressor(eqx.Module):
    """A learned function u(x, t) with n values, in the units of its data.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import AbstractRegressor, Scaling, build_regressor

    model: AbstractRegressor = build_regressor("node", Scaling.identity(1, 1), width=4, key=jax.random.key(0))
    assert model.characteristics(jnp.zeros((3, 1)), jnp.array([0.0, 1.0])).shape == (2, 3, 1)
    ```
    """

    scaling: eqx.AbstractVar[Scaling]
    """The units of the data."""

    def __repr__(self) -> str:
        return summarize(self, count(self.scaling.dim, "position"), count(self.scaling.values, "value"))

    @abstractmethod
    def __call__(
        self, x: Float[Array, "points d"], t: Float[Array, "points"], *, solver: Solver | None = None
    ) -> RegressionResult:
        """Compute the value at every point.

        Args:
            x: Positions.
            t: Times.
            solver: How to integrate; `DEFAULT_PDE_SOLVER` by default.

        Returns:
            The values, and how they were found.
        """

    @abstractmethod
    def characteristics(
        self, starts: Float[Array, "starts d"], times: Float[Array, "times"]
    ) -> Float[Array, "times starts d"]:
        """Compute the learned characteristics.

        Args:
            starts: Positions at t = 0.
            times: Times, in increasing order.

        Returns:
            The positions of every characteristic at every time.
        """


def crossing_penalty(determinant: Float[Array, "points"]) -> Float[Array, "points"]:
    """Penalise characteristics that come close to crossing, beyond which a point has several values or none.

    ```python
    import jax.numpy as jnp
    from charax.models import crossing_penalty

    assert crossing_penalty(jnp.array([1.0, 0.0])).tolist() == [0.0, 0.0625]
    ```

    Args:
        determinant: `RegressionResult.jacobian_determinant`.

    Returns:
        The penalty of every point: 0 where neighbouring characteristics keep a quarter of their initial distance.
    """
    return jnp.square(jax.nn.relu(_MIN_DETERMINANT - determinant))


def succeeded(solution: Solution) -> Bool[Array, "points"]:
    """Which samples of a solve are finite and successful."""
    return jnp.isfinite(solution.u).all(axis=1) & (solution.outcome == Outcome.SUCCESS)


def zero_mlp(sizes: Sequence[int], *, key: PRNGKeyArray) -> Chain:
    """Build a perceptron whose output is zero before training."""
    network = mlp(sizes, key=key)
    last = network.layers[-1]
    return Chain(*network.layers[:-1], jax.tree.map(jnp.zeros_like, last))
