"""The paper's C-NODE for PDEs: networks of the derivatives, the characteristic, the initial value; the foot point."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractVelocity, CharacteristicField, Condition, Read, SeparateJacobian, Time, Timed
from charax.models._regressor import DEFAULT_PDE_SOLVER, AbstractRegressor, RegressionResult, succeeded, zero_mlp
from charax.models._scaling import Scaling
from charax.nn import Network, mlp, split_key
from charax.solve import Solver, find_roots
from charax.solve._roots import freeze

_CONTINUATION_STEPS = 8
"""Newton steps, each at a later time, that lead to the root finder's initial guess."""
_MIN_DT = 0.1
"""The minimum of dt/ds: time must increase along a characteristic for it to reach t."""


class Direction(NamedTuple):
    """The direction of a characteristic in space and time.

    ```python
    import jax.numpy as jnp
    from charax.models import Direction

    assert Direction(jnp.array([[3.0]]), jnp.array([[2.0]])).speed == 1.5
    ```
    """

    dx: Float[Array, "batch d"]
    """dx/ds"""
    dt: Float[Array, "batch 1"]
    """dt/ds"""

    @property
    def speed(self) -> Float[Array, "batch d"]:
        """dx/dt"""
        return self.dx / self.dt


class PathVelocity(AbstractVelocity):
    """d(x, t)/ds as a network of the initial value and the foot point: characteristics are straight.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import PathVelocity
    from charax.nn import mlp

    velocity = PathVelocity(mlp([2, 8, 2], key=jax.random.key(0)), dim=1)
    assert (velocity.direction(jnp.zeros((3, 1)), jnp.ones((3, 1))).dt > 0).all()
    ```
    """

    network: Network
    characteristic_dim: int = eqx.field(static=True)
    reads: tuple[Read, ...] = eqx.field(static=True)

    def __init__(self, network: Network, *, dim: int):
        """Store the network.

        Args:
            network: Maps the initial value and the foot point to d + 1 numbers.
            dim: The number d of space dimensions.
        """
        self.network = network
        self.characteristic_dim = dim + 1
        self.reads = ("context",)

    def direction(self, u0: Float[Array, "batch n"], foot_point: Float[Array, "batch d"]) -> Direction:
        """Compute the direction of characteristics.

        Args:
            u0: The initial values.
            foot_point: The positions at t = 0.

        Returns:
            dx/ds and dt/ds, which do not change along a characteristic.
        """
        out = self.network(jnp.concatenate([u0, foot_point], axis=1))
        return Direction(out[:, :-1], _MIN_DT + jax.nn.softplus(out[:, -1:]))

    def __call__(
        self, s: Time, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> Float[Array, "batch k"]:
        assert z.context is not None
        return z.context[:, 1:]  # after the time


class PathRegressor(AbstractRegressor):
    """u(x, t) = u₀(ξ) + ∫ (∂u/∂x · dx/ds + ∂u/∂t · dt/ds) ds along the characteristic from (ξ, 0) to (x, t).

    The initial value u₀ is a network of the foot point ξ, both derivatives are networks of (u, x, t), and the direction
    is one of u₀ and ξ. The foot point solves ξ + t·(dx/ds)/(dt/ds) = x, which is left to a root finder.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import PathRegressor, Scaling

    model = PathRegressor.build(Scaling.identity(2, 1), width=8, key=jax.random.key(0))
    out = model(jnp.ones((5, 2)), jnp.full(5, 0.5))
    assert out.u.shape == (5, 1) and out.foot_point.shape == (5, 2) and out.found.all()
    ```
    """

    initial: Network
    """The network of u₀."""
    velocity: PathVelocity
    """The direction of characteristics."""
    jacobian: SeparateJacobian
    """The networks of ∂u/∂x and ∂u/∂t."""
    scaling: Scaling = eqx.field(static=True)
    """The units of the data."""

    @classmethod
    def build(cls, scaling: Scaling, *, width: int, key: PRNGKeyArray) -> "PathRegressor":
        """Build a regressor with one hidden layer for u₀ and for the direction, and two for each derivative.

        Args:
            scaling: The units of the data.
            width: The width of the hidden layers.
            key: Random key of the initial weights.

        Returns:
            The regressor.
        """
        initial_key, velocity_key, *keys = split_key(key, 3 + scaling.dim)
        d, n = scaling.dim, scaling.values
        return cls(
            initial=mlp([d, width, n], key=initial_key),
            # Before training x does not change along characteristics, so that none cross.
            velocity=PathVelocity(zero_mlp([n + d, width, d + 1], key=velocity_key), dim=d),
            jacobian=SeparateJacobian([mlp([n + d + 1, width, width, n], key=key) for key in keys], reads_x=True),
            scaling=scaling,
        )

    def __call__(
        self, x: Float[Array, "points d"], t: Float[Array, "points"], *, solver: Solver | None = None
    ) -> RegressionResult:
        position, time = self.scaling.scale_position(x), t[:, None] / self.scaling.time
        networks = (self.initial, self.velocity)
        guess = _continuation(position, time, freeze(networks))
        foot_point, found = find_roots(_residual, guess, (position, time), networks)
        u0 = self.initial(foot_point)
        direction = self.velocity.direction(u0, foot_point)
        start = jnp.concatenate([foot_point, jnp.zeros_like(time)], axis=1)
        field = Timed(CharacteristicField(self.velocity, self.jacobian))
        # s is integrated until t(s) = t, with a constant direction.
        context = jnp.concatenate([time / direction.dt, direction.dx, direction.dt], axis=1)
        solution = (solver or DEFAULT_PDE_SOLVER).solve(field, u0, x0=start, context=context)
        return RegressionResult(
            u=self.scaling.unscale_value(solution.u),
            foot_point=self.scaling.unscale_position(foot_point),
            jacobian_determinant=self._jacobian_determinant(foot_point, time),
            found=found & succeeded(solution),
            solution=solution,
        )

    def _jacobian_determinant(
        self, foot_point: Float[Array, "points d"], time: Float[Array, "points 1"]
    ) -> Float[Array, "points"]:
        end = lambda foot: foot + time * self.velocity.direction(self.initial(foot), foot).speed
        along = lambda unit: jax.jvp(end, (foot_point,), (jnp.broadcast_to(unit, foot_point.shape),))[1]
        columns = jax.vmap(along, out_axes=-1)(jnp.eye(foot_point.shape[1], dtype=foot_point.dtype))
        return _determinants(columns)

    def characteristics(
        self, starts: Float[Array, "starts d"], times: Float[Array, "times"]
    ) -> Float[Array, "times starts d"]:
        foot_point = self.scaling.scale_position(starts)
        speed = self.velocity.direction(self.initial(foot_point), foot_point).speed
        return self.scaling.unscale_position(foot_point + (times / self.scaling.time)[:, None, None] * speed)


def _determinants(matrices: Float[Array, "points d d"]) -> Float[Array, "points"]:
    d = matrices.shape[1]
    if d == 1:
        return matrices[:, 0, 0]
    # Up to 3 there is a formula. Beyond, a batch of matrices is factorised by all threads, and if the root finder does
    # so at the same time, the two wait for each other's threads forever (jaxlib 0.10.2 on two cores).
    return jnp.linalg.det(matrices) if d <= 3 else lax.map(jnp.linalg.det, matrices)


def _continuation(
    position: Float[Array, "points d"], time: Float[Array, "points 1"], networks: tuple[Network, PathVelocity]
) -> Float[Array, "points d"]:
    """Compute an initial guess for the root finder by continuation in time, from t = 0, where it is the position.

    Newton's method that starts at the position overshoots where the speed changes a lot on the way.
    """

    def follow(position: Array, time: Array) -> Array:
        def step(foot_point: Array, share: Array) -> tuple[Array, None]:
            row = (position, share * time)
            slope = jax.jacfwd(_residual)(foot_point, row, networks)
            residual = _residual(foot_point, row, networks)
            change = residual / slope[0] if foot_point.shape == (1,) else jnp.linalg.solve(slope, residual)
            return foot_point - change, None

        shares = jnp.linspace(0, 1, _CONTINUATION_STEPS + 1, dtype=position.dtype)[1:]
        return lax.scan(step, position, shares)[0]

    foot_point = jax.vmap(follow)(position, time)
    return lax.stop_gradient(jnp.where(jnp.isfinite(foot_point), foot_point, position))


def _residual(
    foot_point: Float[Array, "d"],
    row: tuple[Float[Array, "d"], Float[Array, "1"]],
    networks: tuple[Network, PathVelocity],
) -> Float[Array, "d"]:
    """The position at the given time on the characteristic from `foot_point`, minus the given position."""
    (position, time), (initial, velocity) = row, networks
    speed = velocity.direction(initial(foot_point[None]), foot_point[None]).speed[0]
    return foot_point + time * speed - position
