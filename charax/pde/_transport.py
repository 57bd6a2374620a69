"""Linear transport problems with a closed form: the velocity does not depend on the value."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.pde._problem import AbstractProblem, Domain, Line, Plane, Position, Row, domain_field
from charax.pde._profiles import Parameter, as_parameter


def _pulse(x: Float[Array, "batch d"], centre: Array, width: Array) -> Float[Array, "batch"]:
    return jnp.exp(-0.5 * jnp.sum((x - centre) ** 2, axis=1) / width**2)


class Advection(AbstractProblem):
    """uₜ + speed·∇u = rate·u(1 − u): advection of a Gaussian pulse, with logistic growth.

    ```python
    import jax.numpy as jnp
    from charax.pde import Advection, solve

    u = solve(Advection(speed=[2.0]), jnp.array([[3.0]]), jnp.array([1.5]))
    assert abs(u[0] - 1) < 1e-5
    ```
    """

    speed: Float[Array, "d"] = eqx.field(default=(1.0,), converter=as_parameter)
    """The velocity, one number per space dimension."""
    width: Parameter = eqx.field(default=0.5, converter=as_parameter)
    """The standard deviation of the pulse."""
    rate: Parameter = eqx.field(default=0.0, converter=as_parameter)
    """The growth rate."""
    domain: Domain = domain_field((-10.0, 10.0))
    """(lower, upper) per space dimension."""

    def __check_init__(self):
        if self.speed.shape != (self.dim,):
            raise ValueError(f"speed has shape {self.speed.shape}, but domain has {self.dim} dimensions")

    def velocity(self, x: Position, t: Row, u: Row) -> Position:
        return jnp.broadcast_to(self.speed, x.shape)

    def source(self, x: Position, t: Row, u: Row) -> Row:
        return self.rate * u * (1 - u)

    def initial(self, x: Position) -> Row:
        return _pulse(x, jnp.zeros(()), self.width)

    def exact(self, x: Position, t: Row) -> Row:
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
    """The largest velocity."""
    domain: Domain = domain_field((-10.0, 10.0))
    """(lower, upper) per space dimension."""

    def velocity(self, x: Line, t: Row, u: Row) -> Line:
        return self.rate * jnp.sin(x) * jnp.cos(t)[:, None]

    def source(self, x: Line, t: Row, u: Row) -> Row:
        return jnp.zeros_like(u)

    def initial(self, x: Line) -> Row:
        return jnp.cos(x[:, 0]) + x[:, 0] / 2

    def exact(self, x: Line, t: Row) -> Row:
        # tan(x/2) grows like exp(rate·sin t) along a characteristic; atan2 keeps the quadrant of x/2.
        half = x[:, 0] / 2
        turns = 2 * np.pi * jnp.round(half / (2 * np.pi))
        half_foot = turns + jnp.arctan2(jnp.sin(half) * jnp.exp(-self.rate * jnp.sin(t)), jnp.cos(half))
        return self.initial(2 * half_foot[:, None])


class Rotation(AbstractProblem):
    """uₜ + frequency·(−y, x)·∇u = 0: a Gaussian pulse that rotates around the origin.

    ```python
    import jax.numpy as jnp
    from charax.pde import Rotation, solve

    quarter_turn = jnp.array([jnp.pi / 2])
    assert abs(solve(Rotation(), jnp.array([[0.0, 1.0]]), quarter_turn)[0] - 1) < 1e-4
    ```
    """

    frequency: Parameter = eqx.field(default=1.0, converter=as_parameter)
    """The angular frequency."""
    centre: Float[Array, "2"] = eqx.field(default=(1.0, 0.0), converter=as_parameter)
    """The initial center of the pulse."""
    width: Parameter = eqx.field(default=0.5, converter=as_parameter)
    """The standard deviation of the pulse."""
    domain: Domain = domain_field((-4.0, 4.0), (-4.0, 4.0))
    """(lower, upper) per space dimension."""

    def velocity(self, x: Plane, t: Row, u: Row) -> Plane:
        return self.frequency * jnp.stack([-x[:, 1], x[:, 0]], axis=1)

    def source(self, x: Plane, t: Row, u: Row) -> Row:
        return jnp.zeros_like(u)

    def initial(self, x: Plane) -> Row:
        return _pulse(x, self.centre, self.width)

    def exact(self, x: Plane, t: Row) -> Row:
        cos, sin = jnp.cos(self.frequency * t), jnp.sin(self.frequency * t)
        return self.initial(jnp.stack([cos * x[:, 0] + sin * x[:, 1], cos * x[:, 1] - sin * x[:, 0]], axis=1))
