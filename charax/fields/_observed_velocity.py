"""Velocities that are observed, and those that are observed in part."""

from collections.abc import Sequence
from typing import get_args

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.fields._observed_path import find_piece, polynomial
from charax.fields._reads import Condition, Read, Time
from charax.fields._velocity import AbstractVelocity


class ObservedVelocity(AbstractVelocity):
    """dx/ds = dX/ds, the derivative of an observed path: du/ds = J(u) · dX/ds is a neural CDE.

    The path is data of the solve and not part of the model: it comes as `context=path.context()`. Paths with any number
    of pieces and any interpolation can be read by one velocity.

    With `x0=path.start`, whatever reads x sees the observed values X(s).

    ```python
    import jax.numpy as jnp
    from charax.fields import CharacteristicField, FunctionJacobian, ObservedPath, ObservedVelocity
    from charax.solve import Solver

    path = ObservedPath.interpolate(jnp.array([[0.0, 1.0, 3.0]]), jnp.array([[[0.0], [2.0], [1.0]]]))
    growth = FunctionJacobian(lambda x, u: jnp.stack([0 * u, u], axis=1), 2)  # du = u dX, hence u = exp(X)
    field = CharacteristicField(ObservedVelocity(2), growth)
    solution = Solver("dopri5", steps=30).solve(field, jnp.ones((1, 1)), context=path.context())
    assert jnp.allclose(solution.u, jnp.exp(1.0), atol=1e-3)
    ```
    """

    characteristic_dim: int = eqx.field(static=True)
    """The number k of channels of the path, the time among them: `path.channels`."""
    covariates: int = eqx.field(static=True, default=0)
    """The number of covariates in the context, which are not for this velocity."""
    reads: tuple[Read, ...] = eqx.field(static=True, default=("s", "context"), init=False)

    def __check_init__(self):
        if self.characteristic_dim < 1 or self.covariates < 0:
            raise ValueError(
                "an observed velocity needs at least 1 channel and no negative number of covariates, got "
                f"{self.characteristic_dim} and {self.covariates}"
            )

    def __call__(
        self, s: Time, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> Float[Array, "batch k"]:
        context = z.context
        if context is None:
            raise ValueError("an observed velocity reads the path from the context: pass context=path.context()")
        k = self.characteristic_dim
        if context.ndim != 4 or context.shape[3] != k + self.covariates:
            raise ValueError(
                f"a context of the shape {context.shape} is not a path with {k} channels and {self.covariates} "
                "covariates: pass context=path.context(), and path.channels as characteristic_dim"
            )
        knots = context[:, :, 0, 0]
        at = jnp.broadcast_to(jnp.asarray(s, knots.dtype), knots.shape[:1])
        # First the piece, then its columns: a loop over steps would copy a slice of all pieces in each of them.
        local, piece, started = find_piece(at, knots, context)
        return jnp.where(started[:, None], polynomial(local, piece[:, 1:, :k]), 0)

    def split_covariates(self, z: Condition) -> Condition:
        """Return the condition as other velocities see it, without the path.

        Args:
            z: The condition of the solve.

        Returns:
            The condition with the covariates alone as its context.
        """
        if z.context is None or not self.covariates:
            return z._replace(context=None)
        return z._replace(context=z.context[:, 0, 0, self.characteristic_dim :])


class JoinedVelocity(AbstractVelocity):
    """Several velocities, one after the other along k: some directions observed, some learned.

    A velocity next to an observed one does not read the path from the context, but the covariates that were packed with
    it, `path.context(covariates)`.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.fields import CharacteristicField, JoinedVelocity, JointJacobian
    from charax.fields import NetworkVelocity, ObservedPath, ObservedVelocity
    from charax.nn import mlp
    from charax.solve import Solver

    path = ObservedPath.interpolate(jnp.array([[0.0, 1.0, 3.0]]), jnp.array([[[0.0], [2.0], [1.0]]]))
    velocity_key, body_key, key = jax.random.split(jax.random.key(0), 3)
    learned = NetworkVelocity(mlp([4 + 3, 8, 5], key=velocity_key), 5, reads=("u", "context"))
    velocity = JoinedVelocity([ObservedVelocity(2, covariates=3), learned])
    body = mlp([4, 8], final="tanh", key=body_key)
    jacobian = JointJacobian(body, hidden=8, channels=4, characteristic_dim=2 + 5, key=key)
    field = CharacteristicField(velocity, jacobian)
    solution = Solver("dopri5").solve(field, jnp.ones((1, 4)), context=path.context(jnp.ones((1, 3))))
    assert solution.u.shape == (1, 4)
    ```
    """

    velocities: tuple[AbstractVelocity, ...]
    per_time: bool = eqx.field(static=True)
    characteristic_dim: int = eqx.field(static=True)
    reads: tuple[Read, ...] = eqx.field(static=True)

    def __init__(self, velocities: Sequence[AbstractVelocity], *, per_time: bool = False):
        """Join velocities.

        Args:
            velocities: In the order of the Jacobian's columns; at most one of them observed.
            per_time: Whether learned velocities are with respect to the path's time, its first channel, instead of s:
                they are multiplied by dt/ds. Then the solution does not depend on how s runs along the path, and stops
                where the path does, as paths with `aligned` knots need it.

        Raises:
            ValueError: If there are none, more than one is observed, one needs covariates that are not there, or there
                is no path to take the time from.
        """
        if not velocities:
            raise ValueError("there are no velocities to join: give at least one")
        observed = [velocity for velocity in velocities if isinstance(velocity, ObservedVelocity)]
        if len(observed) > 1:
            raise ValueError("a solve has one observed path: put all observed channels into one ObservedVelocity")
        others = [velocity for velocity in velocities if not isinstance(velocity, ObservedVelocity)]
        if observed and not observed[0].covariates and any("context" in velocity.reads for velocity in others):
            raise ValueError(
                "a velocity next to an observed one reads covariates as its context: say how many there are with "
                "ObservedVelocity(…, covariates=…) and pass context=path.context(covariates)"
            )
        if per_time and not observed:
            raise ValueError("per_time needs an observed velocity, whose first channel is the time")
        self.velocities = tuple(velocities)
        self.per_time = per_time
        self.characteristic_dim = sum(velocity.characteristic_dim for velocity in velocities)
        self.reads = tuple(read for read in get_args(Read) if any(read in velocity.reads for velocity in velocities))

    def __call__(
        self, s: Time, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> Float[Array, "batch k"]:
        other = z
        for velocity in self.velocities:
            if isinstance(velocity, ObservedVelocity):
                other = velocity.split_covariates(z)
        parts = [
            velocity(s, x if "x" in velocity.reads else None, u, z if isinstance(velocity, ObservedVelocity) else other)
            for velocity in self.velocities
        ]
        if self.per_time:
            is_observed = [isinstance(velocity, ObservedVelocity) for velocity in self.velocities]
            rate = parts[is_observed.index(True)][:, :1]
            parts = [part if known else rate * part for part, known in zip(parts, is_observed, strict=True)]
        return jnp.concatenate(parts, axis=1)
