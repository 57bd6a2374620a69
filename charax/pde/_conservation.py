"""Problems with a closed form whose velocity depends on the value, so that characteristics may cross."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Float

from charax.pde._problem import AbstractProblem, Domain, Line, Plane, Row, domain_field
from charax.pde._profiles import AbstractProfile, Gaussian, Parameter, as_parameter


def _foot_by_bisection(
    profile: AbstractProfile,
    speed: Callable[[Array], Array],
    x: Float[Array, "batch"],
    t: Float[Array, "batch"],
    crossing: Float[Array, ""],
) -> Float[Array, "batch"]:
    """ξ with ξ + t·speed(profile(ξ)) = x, to machine precision; NaN from the first crossing on.

    In a conservation law without source u is constant along straight characteristics, so no ODE needs to be solved.
    """
    # Points may be less precise than the problem's parameters; the search needs one dtype.
    x, t = (value.astype(jnp.result_type(value, crossing)) for value in (x, t))
    slow, fast = (speed(bound) for bound in profile.bounds())
    largest = jnp.maximum(jnp.abs(slow), jnp.abs(fast))
    resolution = 4 * float(jnp.finfo(x.dtype).eps)

    def residual(foot: Array, args: tuple[AbstractProfile, Array, Array]) -> Array:
        profile, x, t = args
        return foot + t * speed(profile(foot)) - x

    def find(x: Array, t: Array) -> Array:
        margin = t * largest + 1
        bracket = jax.lax.stop_gradient({"lower": x - margin, "upper": x + margin})
        # Bisection ends when neither bracket nor residual can shrink; 64 bisections exhaust float64.
        finder = optx.Bisection(rtol=resolution, atol=resolution, flip=False)
        start = jax.lax.stop_gradient(x)
        return optx.root_find(residual, finder, start, (profile, x, t), bracket, max_steps=64, throw=False).value

    return jnp.where(t < crossing, jax.vmap(find)(x, t), jnp.nan)


def _first(steepest: Float[Array, ""]) -> Float[Array, ""]:
    """The time of the first crossing: one over the largest rate at which neighboring characteristics converge."""
    return jnp.where(steepest > 0, 1 / jnp.where(steepest > 0, steepest, 1), jnp.inf)


class Burgers(AbstractProblem):
    """The inviscid Burgers equation, uₜ + u·uₓ = 0, whose characteristics first cross at t = 1/max(−u₀′).

    ```python
    import jax.numpy as jnp
    from charax.pde import Burgers, Sine, shock_time

    assert abs(shock_time(Burgers(profile=Sine(amplitude=2.0))) - 0.5) < 1e-3
    ```
    """

    profile: AbstractProfile
    """The initial value."""
    domain: Domain = domain_field((-10.0, 10.0))
    """(lower, upper) per space dimension."""

    def velocity(self, x: Line, t: Row, u: Row) -> Line:
        return u[:, None]

    def source(self, x: Line, t: Row, u: Row) -> Row:
        return jnp.zeros_like(u)

    def initial(self, x: Line) -> Row:
        return self.profile(x[:, 0])

    def exact(self, x: Line, t: Row) -> Row:
        crossing = _first(-self.profile.slopes()[0])
        return self.profile(_foot_by_bisection(self.profile, lambda u: u, x[:, 0], t, crossing))


class Traffic(AbstractProblem):
    """The Lighthill–Whitham–Richards model: uₜ + (limit·u(1 − u/jam))ₓ = 0 for the density u of cars.

    Characteristics have the speed limit·(1 − 2u/jam), which is negative in dense traffic.

    ```python
    import jax.numpy as jnp
    from charax.pde import Traffic, solve

    u = solve(Traffic(), jnp.array([[0.0]]), jnp.array([0.5]))
    assert 0 < u[0] < 1
    ```
    """

    profile: AbstractProfile = eqx.field(default_factory=lambda: Gaussian(height=0.6, width=1.0, base=0.2))
    """The initial density."""
    limit: Parameter = eqx.field(default=1.0, converter=as_parameter)
    """The speed on an empty road."""
    jam: Parameter = eqx.field(default=1.0, converter=as_parameter)
    """The density at which traffic stops."""
    domain: Domain = domain_field((-10.0, 10.0))
    """(lower, upper) per space dimension."""

    def velocity(self, x: Line, t: Row, u: Row) -> Line:
        return (self.limit * (1 - 2 * u / self.jam))[:, None]

    def source(self, x: Line, t: Row, u: Row) -> Row:
        return jnp.zeros_like(u)

    def initial(self, x: Line) -> Row:
        return self.profile(x[:, 0])

    def exact(self, x: Line, t: Row) -> Row:
        speed = lambda u: self.limit * (1 - 2 * u / self.jam)
        crossing = _first(2 * self.limit / self.jam * self.profile.slopes()[1])
        return self.profile(_foot_by_bisection(self.profile, speed, x[:, 0], t, crossing))


class PaperProblem(AbstractProblem):
    """The PDE of the paper, u·uₓ + uₜ = u with u(x, 0) = slope·x.

    The paper's closed form belongs to the slope 2/3, where its text says 2.

    ```python
    import jax.numpy as jnp
    from charax.pde import PaperProblem, solve

    u = solve(PaperProblem(), jnp.array([[1.5]]), jnp.array([1.0]))
    assert abs(u[0] - 3 * jnp.e / (2 * jnp.e + 1)) < 1e-4
    ```
    """

    slope: Parameter = eqx.field(default=2 / 3, converter=as_parameter)
    """The slope of the initial value."""
    domain: Domain = domain_field((-10.0, 10.0))
    """(lower, upper) per space dimension."""

    def velocity(self, x: Line, t: Row, u: Row) -> Line:
        return u[:, None]

    def source(self, x: Line, t: Row, u: Row) -> Row:
        return u

    def initial(self, x: Line) -> Row:
        return self.slope * x[:, 0]

    def exact(self, x: Line, t: Row) -> Row:
        spread = 1 + self.slope * jnp.expm1(t)  # dx/dξ
        return self.slope * x[:, 0] * jnp.exp(t) / jnp.where(spread > 0, spread, jnp.nan)


class TracerBurgers(AbstractProblem):
    """The Burgers equation with a decaying tracer q, u = (v, q): vₜ + v·vₓ = 0 and qₜ + v·qₓ = −decay·q.

    ```python
    import jax.numpy as jnp
    from charax.pde import TracerBurgers, solve

    assert solve(TracerBurgers(), jnp.array([[0.0]]), jnp.array([0.5])).shape == (1, 2)
    ```
    """

    profile: AbstractProfile = eqx.field(default_factory=Gaussian)
    """The initial velocity."""
    decay: Parameter = eqx.field(default=1.0, converter=as_parameter)
    """The decay rate of the tracer."""
    domain: Domain = domain_field((-10.0, 10.0))
    """(lower, upper) per space dimension."""

    def velocity(self, x: Line, t: Row, u: Plane) -> Line:
        return u[:, :1]

    def source(self, x: Line, t: Row, u: Plane) -> Plane:
        return jnp.stack([jnp.zeros_like(u[:, 0]), -self.decay * u[:, 1]], axis=1)

    def initial(self, x: Line) -> Plane:
        return jnp.stack([self.profile(x[:, 0]), jnp.cos(x[:, 0])], axis=1)

    def exact(self, x: Line, t: Row) -> Plane:
        crossing = _first(-self.profile.slopes()[0])
        foot = _foot_by_bisection(self.profile, lambda u: u, x[:, 0], t, crossing)
        v, q = self.initial(foot[:, None]).T
        return jnp.stack([v, q * jnp.exp(-self.decay * t)], axis=1)


class PlaneBurgers(AbstractProblem):
    """uₜ + (u·∇)u = 0 in the plane with u(x, 0) = A·x: free particles, u = A(1 + tA)⁻¹x.

    ```python
    import jax.numpy as jnp
    from charax.pde import PlaneBurgers, solve

    assert solve(PlaneBurgers(), jnp.array([[0.5, 0.2]]), jnp.array([0.5])).shape == (1, 2)
    ```
    """

    matrix: Float[Array, "2 2"] = eqx.field(default=((0.5, -1.0), (0.3, -0.4)), converter=as_parameter)
    """A."""
    domain: Domain = domain_field((-4.0, 4.0), (-4.0, 4.0))
    """(lower, upper) per space dimension."""

    def velocity(self, x: Plane, t: Row, u: Plane) -> Plane:
        return u

    def source(self, x: Plane, t: Row, u: Plane) -> Plane:
        return jnp.zeros_like(u)

    def initial(self, x: Plane) -> Plane:
        return x @ self.matrix.T

    def exact(self, x: Plane, t: Row) -> Plane:
        spread = jnp.eye(2) + t[:, None, None] * self.matrix
        foot = jnp.linalg.solve(spread, x[..., None])[..., 0]
        # det(1 + tA) is a parabola in t that starts at 1: its first zero is the first crossing.
        trace, det = jnp.trace(self.matrix), jnp.linalg.det(self.matrix)
        gap = trace**2 - 4 * det
        first = jnp.where(gap >= 0, 2 / (jnp.sqrt(jnp.maximum(gap, 0)) - trace), jnp.inf)
        before = (t < first) | (first <= 0)
        return jnp.where(before[:, None], self.initial(foot), jnp.nan)
