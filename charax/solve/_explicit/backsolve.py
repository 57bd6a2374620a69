"""Equal steps whose gradient is the continuous adjoint: solved back in as many steps, with a constant memory."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from charax.solve._explicit.tableau import Rate, Rule, march
from charax.solve._problem import State


class _Augmented(NamedTuple):
    """What is solved back: the state, the loss's gradient with respect to it, and to everything else so far."""

    y: State
    gradient: State
    total: PyTree[Float[Array, "..."]]


def march_and_return(rule: Rule, rate: Rate, y: State, steps: int) -> State:
    """`march`; a gradient walks the same way back with the adjoint beside the state."""
    # Whatever the rate closes over becomes part of it: the gradient must know.
    rate = eqx.filter_closure_convert(rate, jnp.zeros((), y.u.dtype), y)
    return _march((rate, y), rule, steps)


@eqx.filter_custom_vjp
def _march(moving: tuple[Rate, State], rule: Rule, steps: int) -> State:
    return march(rule, *moving, steps, recompute=True)


@_march.def_fwd
def _march_forward(perturbed, moving: tuple[Rate, State], rule: Rule, steps: int) -> tuple[State, State]:
    del perturbed
    end = march(rule, *moving, steps, recompute=True)
    return end, end


@_march.def_bwd
def _march_backward(end: State, gradient: State, perturbed, moving: tuple[Rate, State], rule: Rule, steps: int):
    moved, still = eqx.partition(moving[0], perturbed[0])
    gradient = jax.tree.map(lambda y, known: jnp.zeros_like(y) if known is None else known, end, gradient)

    def back(t: Float[Array, ""], now: _Augmented) -> _Augmented:
        slope, pull = jax.vjp(lambda moved, y: eqx.combine(moved, still)(1 - t, y), moved, now.y)
        total, before = pull(now.gradient)
        return _Augmented(jax.tree.map(jnp.negative, slope), before, total)

    nothing = jax.tree.map(jnp.zeros_like, moved)
    start = march(rule, back, _Augmented(end, gradient, nothing), steps, recompute=True)
    return start.total, start.gradient
