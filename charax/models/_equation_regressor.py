"""The structured form: the equation uₜ + a·∇u = c itself is learned, and can be plotted."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import Timed
from charax.models._equation_field import Coefficient, EquationField, Periodic, name_variables, scale_periods
from charax.models._known import KnownInitial, KnownSource, check_given
from charax.models._names import FluxShape
from charax.models._regressor import DEFAULT_EQUATION_SOLVER, AbstractRegressor, RegressionResult, succeeded
from charax.models._scaling import Scaling
from charax.nn import Network, mlp, split_key
from charax.solve import Solution, Solver
from charax.solve._roots import freeze, search_roots

if TYPE_CHECKING:
    from charax.models._equation_problem import LearnedProblem

_QUADRATURE = 48
"""Nodes of the integral of the velocity."""
_TOLERANCE = 1e-4
"""Of the position at which a characteristic ends, in scaled units."""


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
        velocity_terms: Sequence[str] = (),
        source_terms: Sequence[str] = (),
        known_source: Sequence[str] | Callable[..., Array] = (),
        known_initial: Sequence[str] | Callable[..., Array] = (),
        period: Sequence[float] = (),
        flux: FluxShape | None = None,
        key: PRNGKeyArray,
    ) -> "EquationRegressor":
        """Build a regressor with two hidden layers for u₀ and one for each coefficient.

        Args:
            scaling: The units of the data.
            width: The width of the hidden layers.
            velocity_reads: What a depends on, of "x", "t" and "u".
            source_reads: What c depends on, of "x", "t" and "u".
            velocity_terms: Terms of a formula that is added to the network of a, such as "u**2"; see `default_terms`.
            source_terms: Terms of a formula that is added to the network of c.
            known_source: c, if it is known: a formula per value, such as ("-0.2*u",), or a function of (x, t, u).
            known_initial: u₀, if it is known: a formula per value, or a function of x.
            period: The period of each position, if all functions of x are periodic.
            flux: Learn a(u) as the derivative of a flux f(u) of which this is known; `velocity_terms` are then terms
                of f, see `flux_terms`.
            key: Random key of the initial weights.

        Returns:
            The regressor.

        Raises:
            ValueError: If a coefficient depends on nothing, or on anything else, or a formula cannot be read, or a
                flux does not suit the data.
        """
        keys = split_key(key, 3)
        d, n = scaling.dim, scaling.values
        build = partial(Coefficient.build, scaling=scaling, width=width, period=period)
        if known_source:
            names = name_variables(("x", "t", "u"), scaling)
            source = KnownSource(check_given(known_source, names, scaling, "source"), names, scaling)
        else:
            source = build(source_reads, outputs=n, terms=source_terms, key=keys[1])
        velocity = build(velocity_reads, outputs=d, terms=velocity_terms, flux=flux, key=keys[0])
        periods = scale_periods(period, scaling)
        if known_initial:
            names = name_variables(("x",), scaling)
            initial = KnownInitial(check_given(known_initial, names, scaling, "initial value"), names, scaling)
        else:
            initial = mlp([d + len(periods), width, width, n], key=keys[2])
            initial = Periodic(initial, periods) if periods else initial
        return cls(initial_network=initial, field=EquationField(velocity, source, d), scaling=scaling)

    def __call__(
        self, x: Float[Array, "points d"], t: Float[Array, "points"], *, solver: Solver | None = None
    ) -> RegressionResult:
        # Forward mode for the foot point, reverse mode for the parameters: only this adjoint has both.
        solver = dataclasses.replace(solver or DEFAULT_EQUATION_SOLVER, adjoint="direct", per_sample=False)
        position, time = self.scaling.scale_position(x), t[:, None] / self.scaling.time
        networks = (self.initial_network, self.field)
        frozen = freeze(networks)
        foot = search_roots(
            lambda foot, row, networks: _solve(networks, foot[None], row[1][None], solver).x[0] - row[0],  # pyright: ignore[reportOptionalSubscript]
            position,
            (position, time),
            frozen,
        )
        solution, derivative = _differentiate_by_foot(networks, foot, time, solver)
        assert solution.x is not None
        spread, slope = lax.stop_gradient(derivative)
        # One step of Newton's method from a root: zero, with the derivative of the foot point in it.
        missed = solution.x - position
        found = (jnp.abs(lax.stop_gradient(missed)) <= _TOLERANCE * (1 + jnp.abs(position))).all(axis=1)
        change = _divide(spread, jnp.where(found[:, None], missed, 0))
        u = solution.u - jnp.einsum("bnd,bd->bn", slope, change)
        return RegressionResult(
            self.scaling.unscale_value(u),
            self.scaling.unscale_position(foot - change),
            jnp.ones_like(t),
            found & succeeded(solution),
            solution,
        )

    def problem(self, *domain: tuple[float, float]) -> "LearnedProblem":
        """Make a problem of the learned equation, for `charax.pde.solve`, `shock_time`, `shocks` and the others.

        Args:
            domain: (lower, upper) per space dimension: where the learned initial value is believed.

        Returns:
            The problem. If there is a single value, its u is a number per point, as `charax.pde` has it.

        Raises:
            ValueError: If the domain is empty, not finite, or has a wrong number of dimensions.
        """
        from charax.models._equation_problem import LearnedProblem

        return LearnedProblem(self, domain)

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

    def flux(self, u: Float[Array, "batch"]) -> Float[Array, "batch d"]:
        """Compute the flux f(u) = ∫a du of a conservation law uₜ + f(u)ₓ = c, in the units of the data.

        Args:
            u: Values.

        Returns:
            The flux, which is zero at u = 0.

        Raises:
            ValueError: If the velocity reads anything but a single u.
        """
        if self.field.velocity.reads != ("u",) or self.scaling.values != 1:
            raise ValueError("only a velocity a(u) of a single value is the derivative of a flux")
        points, weights = np.polynomial.legendre.leggauss(_QUADRATURE)
        values = (u[:, None] * jnp.asarray((points + 1) / 2, u.dtype)).reshape(-1, 1)
        x = jnp.zeros((len(values), self.scaling.dim), u.dtype)
        speeds = self.velocity(x, jnp.zeros(len(values), u.dtype), values).reshape(len(u), len(points), -1)
        return u[:, None] * jnp.einsum("bqd,q->bd", speeds, jnp.asarray(weights / 2, u.dtype))

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

    def spread(
        self, foot_point: Float[Array, "points d"], t: Float[Array, "points"], *, solver: Solver | None = None
    ) -> Float[Array, "points d d"]:
        """Compute how neighboring characteristics spread, ∂x/∂ξ; it is singular where they cross.

        Args:
            foot_point: Where the characteristics start at t = 0.
            t: Times.
            solver: How to integrate; `DEFAULT_EQUATION_SOLVER` by default.

        Returns:
            The derivative of the position at each time with respect to the foot point.
        """
        solver = dataclasses.replace(solver or DEFAULT_EQUATION_SOLVER, adjoint="direct", per_sample=False)
        foot, time = self.scaling.scale_position(foot_point), t[:, None] / self.scaling.time
        scale = jnp.asarray(self.scaling.position_scale, foot.dtype)
        networks = (self.initial_network, self.field)
        return _differentiate_by_foot(networks, foot, time, solver)[1][0] * scale[:, None] / scale

    def _scale(self, x: Array, t: Array, u: Array) -> tuple[Array, Array, Array]:
        return self.scaling.scale_position(x), t[:, None] / self.scaling.time, self.scaling.scale_value(u)


def _differentiate_by_foot(
    networks: tuple[Network, EquationField], foot: Array, time: Array, solver: Solver
) -> tuple[Solution, tuple[Float[Array, "points d d"], Float[Array, "points n d"]]]:
    """The solution along the characteristics, and ∂x/∂ξ and ∂u/∂ξ at their end."""

    def end(foot: Array) -> tuple[tuple[Array | None, Array], Solution]:
        solution = _solve(networks, foot, time, solver)
        return (solution.x, solution.u), solution

    along = lambda unit: jax.jvp(end, (foot,), (jnp.broadcast_to(unit, foot.shape),), has_aux=True)[1:]
    derivative, solution = jax.vmap(along, out_axes=(-1, None))(jnp.eye(foot.shape[1], dtype=foot.dtype))
    return solution, derivative


def _divide(matrix: Float[Array, "points d d"], vector: Float[Array, "points d"]) -> Float[Array, "points d"]:
    if vector.shape[1] == 1:
        return vector / matrix[:, 0]
    return jnp.linalg.solve(matrix, vector[..., None])[..., 0]


def _solve(
    networks: tuple[Network, EquationField], foot_point: Array, time: Array, solver: Solver, at: Array | None = None
) -> Solution:
    initial, field = networks
    return solver.solve(Timed(field), initial(foot_point), x0=foot_point, context=time, at=at)
