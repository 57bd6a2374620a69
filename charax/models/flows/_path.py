"""What happens along a flow: states, characteristics and densities between the data and the base distribution."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractField, Condition, Read, Time
from charax.models.flows._augmented_field import AugmentedField
from charax.models.flows._continuous import ContinuousFlow, normal_log_prob
from charax.models.flows._flow import AbstractFlow
from charax.models.flows._multiscale import MultiScaleFlow
from charax.models.flows._single_scale import SingleScaleFlow
from charax.models.flows._traces import AbstractTrace, ExactTrace, Probes
from charax.nn import split_key
from charax.solve import Solver


class FlowPath(NamedTuple):
    """Samples on their way from the data, at s = 0, to the base distribution.

    The flows of a multi-scale flow are followed one after another, so s is the time since the first of them started.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models.flows import FlowPath, VectorFlowDesign, follow_flow
    from charax.solve import Solver

    flow = VectorFlowDesign("c-node", width=4, characteristic_dim=3).build((2,), key=jax.random.key(0))
    path: FlowPath = follow_flow(flow, jnp.ones((5, 2)), solver=Solver("euler", steps=4), points=9)
    assert path.u.shape == (9, 5, 2) and path.x.shape == (9, 5, 3)
    ```
    """

    s: Float[np.ndarray, "points"]
    """The grid."""
    u: Float[np.ndarray, "points n *state"]
    """The states; of images their logits, with the factored-out channels of a multi-scale flow in their places."""
    x: Float[np.ndarray, "points n k"] | None
    """The characteristics; None for plain fields. That of each flow of a multi-scale flow starts where that of the one
    before it ended."""
    log_prob: Float[np.ndarray, "points n"]
    """The log-density of the states under the distribution that the flow has at s: the learned one at s = 0, the base
    distribution at the end."""
    loss: Float[np.ndarray, "points n"]
    """The loss of the samples, in nats, or in bits per dimension of images, if the flow ended at s."""
    starts: tuple[float, ...]
    """Where each flow starts; just 0 but for a multi-scale flow."""


def follow_flow(
    flow: AbstractFlow,
    samples: Float[Array, "n *shape"],
    *,
    solver: Solver | None = None,
    trace: AbstractTrace | None = None,
    context: Float[Array, "n *_"] | None = None,
    points: int = 17,
    key: PRNGKeyArray | None = None,
) -> FlowPath:
    """Integrate a flow for some samples, and keep what happens on the way.

    Args:
        flow: The flow.
        samples: Rows of numbers, or images of whole grey levels.
        solver: How to integrate; `Solver()` by default.
        trace: How to compute the trace of the field's Jacobian; exactly by default.
        context: One row per sample for a field that reads it.
        points: The number of points of the grid of each flow.
        key: Random key of dequantisation and of an estimated trace.

    Returns:
        States, characteristics and densities on a grid of s.

    Raises:
        ValueError: If there are images and no key.

    ```python
    import jax.numpy as jnp
    from charax.fields import PlainField
    from charax.models.flows import ContinuousFlow, follow_flow
    from charax.solve import Solver

    # du/ds = -u: at s the states are exp(1 - s) times normal numbers.
    flow = ContinuousFlow(PlainField(lambda u: -u, reads=("u",)), (1,))
    path = follow_flow(flow, jnp.zeros((1, 1)), solver=Solver("dopri5"), points=3)
    assert abs(path.log_prob[1, 0] + 0.5 * jnp.log(2 * jnp.pi) + 0.5) < 1e-3
    ```
    """
    solver, trace, at = solver or Solver(), trace or ExactTrace(), jnp.linspace(0, 1, points)
    pieces, u, base, extra = _follow(flow, jnp.asarray(samples), solver, trace, context, at, key)
    log_det, base = _chain([piece.log_det for piece in pieces]), np.asarray(base)
    return FlowPath(
        s=_chain([piece.s for piece in pieces]),
        u=np.asarray(u),
        x=None if pieces[0].x is None else _chain([piece.x for piece in pieces]),
        log_prob=base[-1] + log_det[-1] - log_det,
        loss=np.asarray(jax.vmap(flow.loss)(jnp.asarray(base + log_det + np.asarray(extra)))),
        starts=tuple(float(s) for s in np.cumsum([0.0, *(float(piece.s[-1]) for piece in pieces[:-1])])),
    )


def _chain(curves: Sequence[Float[Array, "points *_"] | None]) -> Float[np.ndarray, "all *_"]:
    """Join curves that start at 0: each continues where the one before it ended."""
    first, *others = [np.asarray(curve) for curve in curves]
    joined = [first]
    for curve in others:
        joined.append(joined[-1][-1] + curve[1:])
    return np.concatenate(joined)


class _Piece(NamedTuple):
    """One solve."""

    s: Array
    u: Array
    x: Array | None
    log_det: Array


@eqx.filter_jit
def _follow(
    flow: AbstractFlow,
    samples: Array,
    solver: Solver,
    trace: AbstractTrace,
    context: Array | None,
    at: Array,
    key: PRNGKeyArray | None,
) -> tuple[list[_Piece], Array, Array, Array]:
    """Every solve, all states, their log-densities if they were those of the base, and what else is in the density."""
    if isinstance(flow, ContinuousFlow):
        piece = _solve(flow, samples, solver, trace, context, at, key)
        return [piece], piece.u, jax.vmap(flow.base_log_prob)(piece.u), jnp.zeros(())
    if key is None:
        raise ValueError("a flow of images dequantises, so it needs key=…")
    noise_key, key = split_key(key)
    if isinstance(flow, SingleScaleFlow):
        state, log_det = flow.scale_pixels(flow.pixels.dequantise(samples, key=noise_key))
        piece = _solve(flow.flow, state, solver, trace, context, at, key)
        return [piece], piece.u, jax.vmap(flow.flow.base_log_prob)(piece.u), log_det
    assert isinstance(flow, MultiScaleFlow)
    logits, log_det = flow.pixels.logit(flow.pixels.dequantise(samples, key=noise_key))
    solved: list[tuple[tuple[ContinuousFlow, ...], _Piece]] = []
    keys = key

    def apply(flows: tuple[ContinuousFlow, ...], u: Array) -> Array:
        nonlocal keys
        for each in flows:
            keys, own = split_key(keys)
            solved.append((flows, _solve(each, u, solver, trace, None, at, own)))
            u = solved[-1][1].u[-1]
        return u

    z = flow._apply_scales(logits, apply)
    # A state in between: undo the scales after it without their flows, put it in its place, undo those before it.
    place = lambda flows, u: flow._invert_scales(z, lambda other, later: u if other is flows else later)
    states = [jax.vmap(lambda u, flows=flows: place(flows, u))(piece.u) for flows, piece in solved]
    u = jnp.concatenate([states[0], *(each[1:] for each in states[1:])])
    return [piece for _, piece in solved], u, jax.vmap(normal_log_prob)(u), log_det


def _solve(
    flow: ContinuousFlow,
    u: Array,
    solver: Solver,
    trace: AbstractTrace,
    context: Array | None,
    at: Array,
    key: PRNGKeyArray | None,
) -> _Piece:
    field = DensityField(flow.field, trace, trace.draw(key, u))
    s = at * flow.end_time
    solution = solver.solve(field, u, s1=flow.end_time, at=s, context=context, with_characteristic=True)
    assert solution.trajectory is not None
    assert solution.characteristic is not None
    log_det, x = solution.characteristic[..., 0], solution.characteristic[..., 1:]
    return _Piece(s, solution.trajectory, x if x.shape[-1] else None, log_det)


class DensityField(AbstractField):
    """A flow's field with the integral of its trace, and its own characteristic after it."""

    field: AbstractField
    trace: AbstractTrace = ExactTrace()
    probes: Probes = None

    @property
    def characteristic_dim(self) -> int:
        return 1 + self.field.characteristic_dim

    @property
    def reads(self) -> frozenset[Read]:
        return self.field.reads

    def __call__(
        self, s: Time, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> tuple[Float[Array, "batch k"], Float[Array, "batch *state"]]:
        integrals, value = AugmentedField(self.field, self.trace, self.probes)(s, None, u, z)
        velocity, _ = self.field(s, None, u, z)
        return integrals if velocity is None else jnp.concatenate([integrals, velocity], axis=-1), value
