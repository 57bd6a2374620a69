"""The structured form: the equation uₜ + a·∇u = c itself is learned, and can be plotted."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import Timed
from charax.models._equation_field import Coefficient, EquationField
from charax.models._regressor import DEFAULT_PDE_SOLVER, AbstractRegressor, RegressionResult, succeeded
from charax.models._scaling import Scaling
from charax.nn import Network, mlp
from charax.solve import Solution, Solver, find_roots


class EquationRegressor(AbstractRegressor):
    """Learns a, c and u₀ of uₜ + a(x, t, u)·∇u = c(x, t, u), u(x, 0) = u₀(x), and solves that along characteristics.

    Data of one solution does not determine both a and c if they may depend on everything: c = uₜ + a·uₓ fits any a. So
    by default both read u only, as in a conservation law; let them read x or t where the medium is known to change.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import EquationRegressor, Scaling

    model = EquationRegressor.build(Scaling.identity(1, 1), width=8, key=jax.random.key(0))
    x, t = jnp.ones((3, 1)), jnp.full(3, 0.5)
    out = model(x, t)
    assert out.u.shape == (3, 1) and model.velocity(x, t, out.u).shape == (3, 1)
    ```
    """

    initial_network: Network
    """The network of u₀, in scaled units."""
    field: EquationField
    """The networks of a and c, in scaled units."""
    scaling: Scaling = eqx.field(static=True)
    """The units of the data."""

    @classmethod
    def build(
        cls,
        scaling: Scaling,
        *,
        width: int,
        velocity_reads: Sequence[str] = ("u",),
        source_reads: Sequence[str] = ("u",),
        key: PRNGKeyArray,
    ) -> "EquationRegressor":
        """Build a regressor with two hidden layers for u₀ and one for each coefficient.

        Args:
            scaling: The units of the data.
            width: The width of the hidden layers.
            velocity_reads: What a depends on, of "x", "t" and "u".
            source_reads: What c depends on, of "x", "t" and "u".
            key: Random key of the initial weights.

        Returns:
            The regressor.

        Raises:
            ValueError: If a coefficient depends on nothing, or on anything else.
        """
        keys = jax.random.split(key, 3)
        d, n = scaling.dim, scaling.values
        field = EquationField(
            Coefficient.build(velocity_reads, scaling, d, width=width, key=keys[0]),
            Coefficient.build(source_reads, scaling, n, width=width, key=keys[1]),
            d,
        )
        initial = mlp([d, width, width, n], key=keys[2])
        return cls(initial_network=initial, field=field, scaling=scaling)

    def __call__(
        self, x: Float[Array, "points d"], t: Float[Array, "points"], *, solver: Solver | None = None
    ) -> RegressionResult:
        # The foot point is differentiated in both modes, which only this adjoint allows.
        solver = dataclasses.replace(solver or DEFAULT_PDE_SOLVER, adjoint="direct", per_sample=False)
        position, time = self.scaling.scale_position(x), t[:, None] / self.scaling.time
        foot_point, found = find_roots(
            lambda foot, row, networks: _solve(networks, foot[None], row[1][None], solver).x[0] - row[0],  # pyright: ignore[reportOptionalSubscript]
            position,
            (position, time),
            (self.initial_network, self.field),
        )
        solution = _solve((self.initial_network, self.field), foot_point, time, solver)
        u, foot_point = self.scaling.unscale_value(solution.u), self.scaling.unscale_position(foot_point)
        return RegressionResult(u, foot_point, jnp.ones_like(t), found & succeeded(solution), solution)

    def velocity(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch"], u: Float[Array, "batch n"]
    ) -> Float[Array, "batch d"]:
        """Compute the learned velocity a(x, t, u), in the units of the data.

        Args:
            x: Positions.
            t: Times.
            u: Values.

        Returns:
            The velocity at every point.
        """
        unit = jnp.asarray(self.scaling.position_scale, x.dtype) / self.scaling.time
        return unit * self.field.velocity(*self._scale(x, t, u))

    def source(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch"], u: Float[Array, "batch n"]
    ) -> Float[Array, "batch n"]:
        """Compute the learned source c(x, t, u), in the units of the data.

        Args:
            x: Positions.
            t: Times.
            u: Values.

        Returns:
            The source at every point.
        """
        unit = jnp.asarray(self.scaling.value_scale, x.dtype) / self.scaling.time
        return unit * self.field.source(*self._scale(x, t, u))

    def initial(self, x: Float[Array, "batch d"]) -> Float[Array, "batch n"]:
        """Compute the learned initial value u₀(x), in the units of the data.

        Args:
            x: Positions.

        Returns:
            The initial value at every position.
        """
        return self.scaling.unscale_value(self.initial_network(self.scaling.scale_position(x)))

    def characteristics(
        self, starts: Float[Array, "starts d"], times: Float[Array, "times"]
    ) -> Float[Array, "times starts d"]:
        foot_point = self.scaling.scale_position(starts)
        end = times.max()
        solution = _solve(
            (self.initial_network, self.field),
            foot_point,
            jnp.full((len(foot_point), 1), end / self.scaling.time),
            Solver("midpoint", steps=32),
            at=times / jnp.where(end > 0, end, 1),
        )
        assert solution.characteristic is not None
        return self.scaling.unscale_position(solution.characteristic)

    def _scale(self, x: Array, t: Array, u: Array) -> tuple[Array, Array, Array]:
        return self.scaling.scale_position(x), t[:, None] / self.scaling.time, self.scaling.scale_value(u)


def _solve(
    networks: tuple[Network, EquationField], foot_point: Array, time: Array, solver: Solver, at: Array | None = None
) -> Solution:
    initial, field = networks
    return solver.solve(Timed(field), initial(foot_point), x0=foot_point, context=time, at=at)
