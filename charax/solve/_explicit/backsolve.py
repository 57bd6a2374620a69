"""Fixed steps whose gradient is the continuous adjoint: as many steps backwards, in constant memory."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from charax.solve._explicit.fixed import integrate_fixed
from charax.solve._explicit.tableau import Tableau, VectorField
from charax.solve._problem import SolverState


class _Augmented(NamedTuple):
    """What is integrated backwards: the state, its adjoint, and the gradient of the parameters so far."""

    y: SolverState
    adjoint: SolverState
    gradient: PyTree[Float[Array, "..."]]


def integrate_fixed_backsolve(tableau: Tableau, vector_field: VectorField, y0: SolverState, steps: int) -> SolverState:
    """`integrate_fixed`, with a gradient that integrates state and adjoint backwards."""
    # Whatever the vector field closes over becomes part of it: the gradient must know.
    vector_field = eqx.filter_closure_convert(vector_field, jnp.zeros((), y0.u.dtype), y0)
    return _integrate((vector_field, y0), tableau, steps)


@eqx.filter_custom_vjp
def _integrate(differentiable: tuple[VectorField, SolverState], tableau: Tableau, steps: int) -> SolverState:
    return integrate_fixed(tableau, *differentiable, steps, recompute=True)


@_integrate.def_fwd
def _integrate_forward(
    perturbed, differentiable: tuple[VectorField, SolverState], tableau: Tableau, steps: int
) -> tuple[SolverState, SolverState]:
    del perturbed
    y1 = integrate_fixed(tableau, *differentiable, steps, recompute=True)
    return y1, y1


@_integrate.def_bwd
def _integrate_reverse(
    y1: SolverState,
    cotangent: SolverState,
    perturbed,
    differentiable: tuple[VectorField, SolverState],
    tableau: Tableau,
    steps: int,
):
    parameters, static = eqx.partition(differentiable[0], perturbed[0])
    adjoint = jax.tree.map(lambda y, known: jnp.zeros_like(y) if known is None else known, y1, cotangent)

    def backwards(t: Float[Array, ""], now: _Augmented) -> _Augmented:
        dy, vjp = jax.vjp(lambda parameters, y: eqx.combine(parameters, static)(1 - t, y), parameters, now.y)
        gradient, adjoint = vjp(now.adjoint)
        return _Augmented(jax.tree.map(jnp.negative, dy), adjoint, gradient)

    zeros = jax.tree.map(jnp.zeros_like, parameters)
    start = integrate_fixed(tableau, backwards, _Augmented(y1, adjoint, zeros), steps, recompute=True)
    return start.gradient, start.adjoint
