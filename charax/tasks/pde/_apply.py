"""A model at points of space and time, compiled once for everything that asks for values."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from charax.solve import Solver
from charax.train import compile_with, quick_compilation
from charax.train._precision import widen

BATCH = 256
"""Points per call. Compiling takes longer than solving, so that all callers share one shape."""


def quick_solves() -> dict[str, bool | int | str]:
    """Options of programs of solves with root finding, on a CPU: the older emitters of fused loops and less
    optimization by LLVM compile them in three fifths of the time, to something as fast."""
    options = quick_compilation()
    return {**options, "xla_cpu_use_fusion_emitters": False} if options else {}


compile_solves = compile_with(quick_solves)
"""`eqx.filter_jit` with `quick_solves`."""


def model_at(
    model: eqx.Module, points: Float[Array, "points dt"], solver: Solver
) -> tuple[Float[Array, "points n"], Float[Array, "points n"], Bool[Array, "points"], Float[Array, "points d"]]:
    """The values with NaN where there is no characteristic, the values, whether there is one, and its foot point."""
    points = widen(points)
    out = model(points[:, :-1], points[:, -1], solver=solver)  # pyright: ignore[reportCallIssue]
    return jnp.where(out.found[:, None], out.u, jnp.nan), out.u, out.found, out.foot_point


apply_model = compile_solves(model_at)
"""`model_at`, compiled."""
