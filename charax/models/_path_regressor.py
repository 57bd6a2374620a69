"""The paper's C-NODE for PDEs: derivative networks along a path, the path, the initial condition, the foot point."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractVelocity, CharacteristicField, Condition, Read, Scalar, SeparateJacobian, Timed
from charax.models._regressor import DEFAULT_SOLVER, AbstractRegressor, Regressed, good_rows, quiet_mlp
from charax.models._scaling import Scaling
from charax.nn import Network, mlp
from charax.solve import Solver, find_roots
from charax.solve._roots import freeze

_STAGES = 8
_SLOWEST = 0.1
"""The least dt/ds: a path must go on in time to arrive."""


class Direction(NamedTuple):
    """Where a path goes: dx/ds and dt/ds."""

    dx: Float[Array, "batch d"]
    dt: Float[Array, "batch 1"]

    @property
    def slope(self) -> Float[Array, "batch d"]:
        """dx/dt"""
        return self.dx / self.dt


class PathVelocity(AbstractVelocity):
    """d(x, t)/ds as a network of the value and the place in which a path starts: paths are straight.

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
        """`network` maps the initial value and the foot point to d + 1 numbers."""
        self.network = network
        self.characteristic_dim = dim + 1
        self.reads = ("context",)

    def direction(self, u0: Float[Array, "batch n"], foot: Float[Array, "batch d"]) -> Direction:
        """The direction of the path that starts in `foot` with the value `u0`."""
        out = self.network(jnp.concatenate([u0, foot], axis=1))
        return Direction(out[:, :-1], _SLOWEST + jax.nn.softplus(out[:, -1:]))

    def __call__(
        self, s: Scalar, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> Float[Array, "batch k"]:
        assert z.context is not None
        return z.context[:, 1:]  # after the time


class PathRegressor(AbstractRegressor):
    """u(x, t) = u₀(ξ) + ∫ (∂u/∂x · dx/ds + ∂u/∂t · dt/ds) ds along the path from (ξ, 0) to (x, t).

    The initial value u₀ is a network of the foot point ξ, both derivatives are networks of (u, x, t), and so is the
    direction of u₀ and ξ. The foot point solves ξ + t·(dx/ds)/(dt/ds) = x, which is left to a root finder.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import PathRegressor, Scaling
    from charax.nn import count_parameters

    model = PathRegressor.build(Scaling.none(2, 1), width=8, key=jax.random.key(0))
    out = model(jnp.ones((5, 2)), jnp.full(5, 0.5))
    assert out.u.shape == (5, 1) and out.foot.shape == (5, 2) and out.found.all()
    ```
    """

    initial: Network
    velocity: PathVelocity
    jacobian: SeparateJacobian
    scaling: Scaling = eqx.field(static=True)

    @classmethod
    def build(cls, scaling: Scaling, *, width: int, key: PRNGKeyArray) -> "PathRegressor":
        """One hidden layer for u₀ and the direction, two for each derivative."""
        initial_key, velocity_key, *keys = jax.random.split(key, 3 + scaling.dim)
        d, n = scaling.dim, scaling.values
        return cls(
            initial=mlp([d, width, n], key=initial_key),
            # At first every path stays in its place, so that none cross.
            velocity=PathVelocity(quiet_mlp([n + d, width, d + 1], key=velocity_key), dim=d),
            jacobian=SeparateJacobian([mlp([n + d + 1, width, width, n], key=key) for key in keys], reads_x=True),
            scaling=scaling,
        )

    def __call__(
        self, x: Float[Array, "points d"], t: Float[Array, "points"], *, solver: Solver | None = None
    ) -> Regressed:
        place, time = self.scaling.place(x), t[:, None] / self.scaling.time
        networks = (self.initial, self.velocity)
        foot, found = find_roots(_miss, _approach(place, time, freeze(networks)), (place, time), networks)
        u0 = self.initial(foot)
        direction = self.velocity.direction(u0, foot)
        start = jnp.concatenate([foot, jnp.zeros_like(time)], axis=1)
        field = Timed(CharacteristicField(self.velocity, self.jacobian))
        # The parameter s runs until t(s) = t, and the direction stays what it is on the way.
        context = jnp.concatenate([time / direction.dt, direction.dx, direction.dt], axis=1)
        solution = (solver or DEFAULT_SOLVER).solve(field, u0, x0=start, context=context)
        spread = self._spread(foot, time)
        u, foot = self.scaling.value_back(solution.u), self.scaling.place_back(foot)
        return Regressed(u, foot, spread, found & good_rows(solution), solution)

    def _spread(self, foot: Float[Array, "points d"], time: Float[Array, "points 1"]) -> Float[Array, "points"]:
        end = lambda foot: foot + time * self.velocity.direction(self.initial(foot), foot).slope
        along = lambda unit: jax.jvp(end, (foot,), (jnp.broadcast_to(unit, foot.shape),))[1]
        columns = jax.vmap(along, out_axes=-1)(jnp.eye(foot.shape[1], dtype=foot.dtype))
        return _determinants(columns)

    def paths(self, starts: Float[Array, "starts d"], times: Float[Array, "times"]) -> Float[Array, "times starts d"]:
        """Straight lines, each in its own direction."""
        foot = self.scaling.place(starts)
        slope = self.velocity.direction(self.initial(foot), foot).slope
        return self.scaling.place_back(foot + (times / self.scaling.time)[:, None, None] * slope)


def _determinants(matrices: Float[Array, "points d d"]) -> Float[Array, "points"]:
    d = matrices.shape[1]
    if d == 1:
        return matrices[:, 0, 0]
    # Up to 3 there is a formula. Beyond, many matrices are factorised by all threads together, and if the root finder
    # does so at the same time, the two wait for each other's threads for ever (jaxlib 0.10.2 on two cores).
    return jnp.linalg.det(matrices) if d <= 3 else lax.map(jnp.linalg.det, matrices)


def _approach(
    place: Float[Array, "points d"], time: Float[Array, "points 1"], networks: tuple[Network, PathVelocity]
) -> Float[Array, "points d"]:
    """A start for the root finder: at t = 0 the foot point is the place itself, and it is followed from there to t.

    Newton's method straight from the place overshoots where the speed changes a lot on the way.
    """

    def follow(place: Array, time: Array) -> Array:
        def step(foot: Array, share: Array) -> tuple[Array, None]:
            row = (place, share * time)
            change, left = jax.jacfwd(_miss)(foot, row, networks), _miss(foot, row, networks)
            return foot - (left / change[0] if foot.shape == (1,) else jnp.linalg.solve(change, left)), None

        return lax.scan(step, place, jnp.linspace(0, 1, _STAGES + 1, dtype=place.dtype)[1:])[0]

    foot = jax.vmap(follow)(place, time)
    return lax.stop_gradient(jnp.where(jnp.isfinite(foot), foot, place))


def _miss(
    foot: Float[Array, "d"], row: tuple[Float[Array, "d"], Float[Array, "1"]], networks: tuple[Network, PathVelocity]
) -> Float[Array, "d"]:
    """How far from the place the path from `foot` is when it is time."""
    (place, time), (initial, velocity) = row, networks
    slope = velocity.direction(initial(foot[None]), foot[None]).slope[0]
    return foot + time * slope - place
