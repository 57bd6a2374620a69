"""Problems with a closed form."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

from charax.pde.problem import AbstractProblem, Domain, as_domain
from charax.pde.profiles import AbstractProfile, Gaussian, Parameter, Ramp, Sine, as_parameter


def _domain(*default: tuple[float, float]):
    return eqx.field(default=default, static=True, converter=as_domain)


def _pulse(x: Float[Array, "batch d"], centre: Array, width: Array) -> Float[Array, "batch"]:
    return jnp.exp(-0.5 * jnp.sum((x - centre) ** 2, axis=1) / width**2)


class Advection(AbstractProblem):
    """uₜ + speed·∇u = rate·u(1 − u): a Gaussian pulse carried along, and growing where there is a rate.

    ```python
    import jax.numpy as jnp
    from charax.pde import Advection, solve

    u = solve(Advection(speed=[2.0]), jnp.array([[3.0]]), jnp.array([1.5]))
    assert abs(u[0] - 1) < 1e-5
    ```
    """

    speed: Float[Array, "d"] = eqx.field(default=(1.0,), converter=as_parameter)
    width: Parameter = eqx.field(default=0.5, converter=as_parameter)
    rate: Parameter = eqx.field(default=0.0, converter=as_parameter)
    domain: Domain = _domain((-10.0, 10.0))

    def __check_init__(self):
        if self.speed.shape != (self.dim,):
            raise ValueError(f"speed has shape {self.speed.shape}, but domain has {self.dim} dimensions")

    def velocity(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch"], u: Float[Array, "batch"]
    ) -> Float[Array, "batch d"]:
        return jnp.broadcast_to(self.speed, x.shape)

    def source(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch"], u: Float[Array, "batch"]
    ) -> Float[Array, "batch"]:
        return self.rate * u * (1 - u)

    def initial(self, x: Float[Array, "batch d"]) -> Float[Array, "batch"]:
        return _pulse(x, jnp.zeros(()), self.width)

    def exact(self, x: Float[Array, "batch d"], t: Float[Array, "batch"]) -> Float[Array, "batch"]:
        u = self.initial(x - self.speed * t[:, None])
        return u / (u + (1 - u) * jnp.exp(-self.rate * t))


class VariableAdvection(AbstractProblem):
    """uₜ + rate·sin(x)·cos(t)·uₓ = 0, with u(x, 0) = cos(x) + x/2.

    ```python
    import jax.numpy as jnp
    from charax.pde import VariableAdvection, solve

    problem, x, t = VariableAdvection(), jnp.array([[1.0]]), jnp.array([1.5])
    assert abs(solve(problem, x, t) - problem.exact(x, t)) < 1e-4
    ```
    """

    rate: Parameter = eqx.field(default=1.0, converter=as_parameter)
    domain: Domain = _domain((-10.0, 10.0))

    def velocity(
        self, x: Float[Array, "batch 1"], t: Float[Array, "batch"], u: Float[Array, "batch"]
    ) -> Float[Array, "batch 1"]:
        return self.rate * jnp.sin(x) * jnp.cos(t)[:, None]

    def source(
        self, x: Float[Array, "batch 1"], t: Float[Array, "batch"], u: Float[Array, "batch"]
    ) -> Float[Array, "batch"]:
        return jnp.zeros_like(u)

    def initial(self, x: Float[Array, "batch 1"]) -> Float[Array, "batch"]:
        return jnp.cos(x[:, 0]) + x[:, 0] / 2

    def exact(self, x: Float[Array, "batch 1"], t: Float[Array, "batch"]) -> Float[Array, "batch"]:
        # tan(x/2) grows like exp(rate·sin t) along a characteristic; atan2 keeps the quadrant of x/2.
        half = x[:, 0] / 2
        turns = 2 * np.pi * jnp.round(half / (2 * np.pi))
        half_foot = turns + jnp.arctan2(jnp.sin(half) * jnp.exp(-self.rate * jnp.sin(t)), jnp.cos(half))
        return self.initial(2 * half_foot[:, None])


class Rotation(AbstractProblem):
    """uₜ + frequency·(−y, x)·∇u = 0: a pulse off the centre that goes round it.

    ```python
    import jax.numpy as jnp
    from charax.pde import Rotation, solve

    quarter_turn = jnp.array([jnp.pi / 2])
    assert abs(solve(Rotation(), jnp.array([[0.0, 1.0]]), quarter_turn)[0] - 1) < 1e-4
    ```
    """

    frequency: Parameter = eqx.field(default=1.0, converter=as_parameter)
    centre: Float[Array, "2"] = eqx.field(default=(1.0, 0.0), converter=as_parameter)
    width: Parameter = eqx.field(default=0.5, converter=as_parameter)
    domain: Domain = _domain((-4.0, 4.0), (-4.0, 4.0))

    def velocity(
        self, x: Float[Array, "batch 2"], t: Float[Array, "batch"], u: Float[Array, "batch"]
    ) -> Float[Array, "batch 2"]:
        return self.frequency * jnp.stack([-x[:, 1], x[:, 0]], axis=1)

    def source(
        self, x: Float[Array, "batch 2"], t: Float[Array, "batch"], u: Float[Array, "batch"]
    ) -> Float[Array, "batch"]:
        return jnp.zeros_like(u)

    def initial(self, x: Float[Array, "batch 2"]) -> Float[Array, "batch"]:
        return _pulse(x, self.centre, self.width)

    def exact(self, x: Float[Array, "batch 2"], t: Float[Array, "batch"]) -> Float[Array, "batch"]:
        cos, sin = jnp.cos(self.frequency * t), jnp.sin(self.frequency * t)
        return self.initial(jnp.stack([cos * x[:, 0] + sin * x[:, 1], cos * x[:, 1] - sin * x[:, 0]], axis=1))


def _foot_by_bisection(
    profile: AbstractProfile,
    speed: Callable[[Array], Array],
    x: Float[Array, "batch"],
    t: Float[Array, "batch"],
    crossing: Float[Array, ""],
) -> Float[Array, "batch"]:
    """ξ with ξ + t·speed(profile(ξ)) = x, to the last digits; NaN from the first crossing on.

    A conservation law without source keeps u along straight characteristics, so this is its solution: no
    characteristic is traced.
    """
    # Points may be less precise than the problem's parameters; the search needs one precision.
    x, t = (value.astype(jnp.result_type(value, crossing)) for value in (x, t))
    slow, fast = (speed(bound) for bound in profile.bounds())
    reach = jnp.maximum(jnp.abs(slow), jnp.abs(fast))
    resolution = 4 * float(jnp.finfo(x.dtype).eps)

    def miss(foot: Array, args: tuple[AbstractProfile, Array, Array]) -> Array:
        profile, x, t = args
        return foot + t * speed(profile(foot)) - x

    def find(x: Array, t: Array) -> Array:
        margin = t * reach + 1
        bracket = jax.lax.stop_gradient({"lower": x - margin, "upper": x + margin})
        # Bisection ends when neither bracket nor residual can shrink; 64 halvings exhaust float64.
        finder = optx.Bisection(rtol=resolution, atol=resolution, flip=False)
        start = jax.lax.stop_gradient(x)
        return optx.root_find(miss, finder, start, (profile, x, t), bracket, max_steps=64, throw=False).value

    return jnp.where(t < crossing, jax.vmap(find)(x, t), jnp.nan)


def _first(steepest: Float[Array, ""]) -> Float[Array, ""]:
    """The first crossing, where neighbours approach each other at this rate."""
    return jnp.where(steepest > 0, 1 / jnp.where(steepest > 0, steepest, 1), jnp.inf)


class Burgers(AbstractProblem):
    """uₜ + u·uₓ = 0, inviscid: what is high overtakes what is low, first at t = 1/max(−u₀′).

    ```python
    import jax.numpy as jnp
    from charax.pde import Burgers, Sine, shock_time

    assert abs(shock_time(Burgers(profile=Sine(amplitude=2.0))) - 0.5) < 1e-3
    ```
    """

    profile: AbstractProfile
    domain: Domain = _domain((-10.0, 10.0))

    def velocity(
        self, x: Float[Array, "batch 1"], t: Float[Array, "batch"], u: Float[Array, "batch"]
    ) -> Float[Array, "batch 1"]:
        return u[:, None]

    def source(
        self, x: Float[Array, "batch 1"], t: Float[Array, "batch"], u: Float[Array, "batch"]
    ) -> Float[Array, "batch"]:
        return jnp.zeros_like(u)

    def initial(self, x: Float[Array, "batch 1"]) -> Float[Array, "batch"]:
        return self.profile(x[:, 0])

    def exact(self, x: Float[Array, "batch 1"], t: Float[Array, "batch"]) -> Float[Array, "batch"]:
        crossing = _first(-self.profile.slopes()[0])
        return self.profile(_foot_by_bisection(self.profile, lambda u: u, x[:, 0], t, crossing))


class Traffic(AbstractProblem):
    """Lighthill–Whitham–Richards: uₜ + (limit·u(1 − u/jam))ₓ = 0 for the density u of cars.

    Information travels at limit·(1 − 2u/jam), backwards in dense traffic.

    ```python
    import jax.numpy as jnp
    from charax.pde import Traffic, solve

    u = solve(Traffic(), jnp.array([[0.0]]), jnp.array([0.5]))
    assert 0 < u[0] < 1
    ```
    """

    profile: AbstractProfile = eqx.field(default_factory=lambda: Gaussian(height=0.6, width=1.0, base=0.2))
    limit: Parameter = eqx.field(default=1.0, converter=as_parameter)
    jam: Parameter = eqx.field(default=1.0, converter=as_parameter)
    domain: Domain = _domain((-10.0, 10.0))

    def velocity(
        self, x: Float[Array, "batch 1"], t: Float[Array, "batch"], u: Float[Array, "batch"]
    ) -> Float[Array, "batch 1"]:
        return (self.limit * (1 - 2 * u / self.jam))[:, None]

    def source(
        self, x: Float[Array, "batch 1"], t: Float[Array, "batch"], u: Float[Array, "batch"]
    ) -> Float[Array, "batch"]:
        return jnp.zeros_like(u)

    def initial(self, x: Float[Array, "batch 1"]) -> Float[Array, "batch"]:
        return self.profile(x[:, 0])

    def exact(self, x: Float[Array, "batch 1"], t: Float[Array, "batch"]) -> Float[Array, "batch"]:
        speed = lambda u: self.limit * (1 - 2 * u / self.jam)
        crossing = _first(2 * self.limit / self.jam * self.profile.slopes()[1])
        return self.profile(_foot_by_bisection(self.profile, speed, x[:, 0], t, crossing))


class PaperProblem(AbstractProblem):
    """u·uₓ + uₜ = u with u(x, 0) = slope·x.

    The paper's closed form belongs to the slope 2/3, where its text says 2.

    ```python
    import jax.numpy as jnp
    from charax.pde import PaperProblem, solve

    u = solve(PaperProblem(), jnp.array([[1.5]]), jnp.array([1.0]))
    assert abs(u[0] - 3 * jnp.e / (2 * jnp.e + 1)) < 1e-4
    ```
    """

    slope: Parameter = eqx.field(default=2 / 3, converter=as_parameter)
    domain: Domain = _domain((-10.0, 10.0))

    def velocity(
        self, x: Float[Array, "batch 1"], t: Float[Array, "batch"], u: Float[Array, "batch"]
    ) -> Float[Array, "batch 1"]:
        return u[:, None]

    def source(
        self, x: Float[Array, "batch 1"], t: Float[Array, "batch"], u: Float[Array, "batch"]
    ) -> Float[Array, "batch"]:
        return u

    def initial(self, x: Float[Array, "batch 1"]) -> Float[Array, "batch"]:
        return self.slope * x[:, 0]

    def exact(self, x: Float[Array, "batch 1"], t: Float[Array, "batch"]) -> Float[Array, "batch"]:
        spread = 1 + self.slope * jnp.expm1(t)  # dx/dξ, the distance between neighbours
        return self.slope * x[:, 0] * jnp.exp(t) / jnp.where(spread > 0, spread, jnp.nan)


class TracerBurgers(AbstractProblem):
    """Burgers carrying a decaying tracer q, u = (v, q): vₜ + v·vₓ = 0 and qₜ + v·qₓ = −decay·q.

    ```python
    import jax.numpy as jnp
    from charax.pde import TracerBurgers, solve

    assert solve(TracerBurgers(), jnp.array([[0.0]]), jnp.array([0.5])).shape == (1, 2)
    ```
    """

    profile: AbstractProfile = eqx.field(default_factory=Gaussian)
    decay: Parameter = eqx.field(default=1.0, converter=as_parameter)
    domain: Domain = _domain((-10.0, 10.0))

    def velocity(
        self, x: Float[Array, "batch 1"], t: Float[Array, "batch"], u: Float[Array, "batch 2"]
    ) -> Float[Array, "batch 1"]:
        return u[:, :1]

    def source(
        self, x: Float[Array, "batch 1"], t: Float[Array, "batch"], u: Float[Array, "batch 2"]
    ) -> Float[Array, "batch 2"]:
        return jnp.stack([jnp.zeros_like(u[:, 0]), -self.decay * u[:, 1]], axis=1)

    def initial(self, x: Float[Array, "batch 1"]) -> Float[Array, "batch 2"]:
        return jnp.stack([self.profile(x[:, 0]), jnp.cos(x[:, 0])], axis=1)

    def exact(self, x: Float[Array, "batch 1"], t: Float[Array, "batch"]) -> Float[Array, "batch 2"]:
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
    domain: Domain = _domain((-4.0, 4.0), (-4.0, 4.0))

    def velocity(
        self, x: Float[Array, "batch 2"], t: Float[Array, "batch"], u: Float[Array, "batch 2"]
    ) -> Float[Array, "batch 2"]:
        return u

    def source(
        self, x: Float[Array, "batch 2"], t: Float[Array, "batch"], u: Float[Array, "batch 2"]
    ) -> Float[Array, "batch 2"]:
        return jnp.zeros_like(u)

    def initial(self, x: Float[Array, "batch 2"]) -> Float[Array, "batch 2"]:
        return x @ self.matrix.T

    def exact(self, x: Float[Array, "batch 2"], t: Float[Array, "batch"]) -> Float[Array, "batch 2"]:
        spread = jnp.eye(2) + t[:, None, None] * self.matrix
        foot = jnp.linalg.solve(spread, x[..., None])[..., 0]
        # det(1 + tA) is a parabola in t that starts at 1: its first zero is the first crossing.
        trace, det = jnp.trace(self.matrix), jnp.linalg.det(self.matrix)
        gap = trace**2 - 4 * det
        first = jnp.where(gap >= 0, 2 / (jnp.sqrt(jnp.maximum(gap, 0)) - trace), jnp.inf)
        before = (t < first) | (first <= 0)
        return jnp.where(before[:, None], self.initial(foot), jnp.nan)


PROBLEMS: Mapping[str, Callable[[], AbstractProblem]] = MappingProxyType(
    {
        "advection": Advection,
        "advection-2d": lambda: Advection(speed=(1.0, -0.5), domain=((-6.0, 6.0), (-6.0, 6.0))),
        "variable-advection": VariableAdvection,
        "rotation": Rotation,
        "advection-reaction": lambda: Advection(rate=2.0),
        "burgers-ramp": lambda: Burgers(profile=Ramp()),
        "burgers-sine": lambda: Burgers(profile=Sine()),
        "burgers-gaussian": lambda: Burgers(profile=Gaussian()),
        "burgers-tracer": TracerBurgers,
        "burgers-2d": PlaneBurgers,
        "traffic": Traffic,
        "paper": PaperProblem,
        "paper-steep": lambda: PaperProblem(slope=2.0),
    }
)
"""Built-in problems by name; call one to build it with its default parameters."""
