"""What a solve gives back."""

import enum

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Outcome(enum.IntEnum):
    """How a solve ended. Under `jit` it is a number in `Solution.outcome`."""

    SUCCESS = 0
    OUT_OF_STEPS = 1
    STEP_VANISHED = 2
    NOT_FINITE = 3
    METHOD_FAILED = 4


class SolveError(RuntimeError):
    """A solve that did not reach its end, in words."""


class Stats(eqx.Module):
    """Counts and sizes of a solve. With `per_sample` steps every entry has one number per sample."""

    nfe: Int[Array, "*batch"] | None
    """Evaluations of the field in the forward solve, exactly; None for an implicit method, which iterates."""
    accepted: Int[Array, "*batch"]
    rejected: Int[Array, "*batch"]
    reached: Float[Array, "*batch"]
    """The fraction of the way from s0 to s1 that was covered."""
    last_step: Float[Array, "*batch"]
    """The size of the last attempted step, as a fraction of the whole way."""
    smallest_step: Float[Array, "*batch"]
    """The smallest accepted step, as a fraction of the whole way."""
    rtol: Float[Array, "*batch"]
    stiffness: Float[Array, "*batch"] | None
    """Mean step times the field's fastest rate, only for a solve that ran out of steps outside of `jit`.
    An explicit method is unstable from about 2 to 4 on, and more accurate than asked far below 1."""
    max_steps: int = eqx.field(static=True)


class Solution(eqx.Module):
    """The end of a walk, and its course if it was asked for."""

    u: Float[Array, "batch *state"]
    """u(s1). NaN where the solve failed."""
    x: Float[Array, "batch k"] | None
    """x(s1), if the field integrates x or the characteristic was asked for."""
    s: Float[Array, "points"] | None
    """The requested points."""
    trajectory: Float[Array, "points batch *state"] | None
    """u at the requested points."""
    characteristic: Float[Array, "points batch k"] | None
    """x at the requested points."""
    outcome: Int[Array, "*batch"]
    """An `Outcome`; one per sample with `per_sample` steps."""
    stats: Stats

    def check(self) -> "Solution":
        """Return this solution, or raise `SolveError` with the cause and what to do about it."""
        failed = jnp.flatnonzero(jnp.atleast_1d(self.outcome))
        if failed.size == 0:
            return self
        first = int(failed[0])
        pick = (lambda leaf: leaf[first]) if self.outcome.ndim else (lambda leaf: leaf)
        who = f"{failed.size} of {self.outcome.size} samples (the first is number {first})" if self.outcome.ndim else ""
        raise SolveError(_explain(Outcome(int(pick(self.outcome))), jax.tree.map(pick, self.stats), self.u.dtype, who))


def _explain(outcome: Outcome, stats: Stats, dtype: jnp.dtype, who: str) -> str:
    failed = f"the solve failed for {who}: " if who else "the solve failed: "
    at = f"{float(stats.reached):.1%} of the way from s0 to s1"
    match outcome:
        case Outcome.OUT_OF_STEPS:
            return f"{failed}max_steps={stats.max_steps} steps were used up at {at}. {_why_so_many_steps(stats, dtype)}"
        case Outcome.STEP_VANISHED:
            return (
                f"{failed}the step size shrank to nothing at {at}. The solution runs off to infinity there, or the "
                "field is not finite: look at u near that point, end at a smaller s1, or bound the field (tanh)."
                + (" An implicit method in float32 cannot keep to rtol below about 1e-3." if stats.nfe is None else "")
            )
        case Outcome.NOT_FINITE:
            return (
                f"{failed}u is not finite at s1. The field overflowed or returned NaN, or the fixed steps are too "
                "large: use more steps, or tolerances (steps=None), which would have shown where it happens."
            )
        case _:
            return (
                f"{failed}the method gave up at {at}; for an implicit method, its inner solve did not converge. "
                "Loosen rtol and atol, or try another method."
            )


def _why_so_many_steps(stats: Stats, dtype: jnp.dtype) -> str:
    """Which of tolerance, blow-up, stiffness and a too-small limit is likely, from the recorded steps."""
    attempts = int(stats.accepted) + int(stats.rejected)
    reached, last, rtol = float(stats.reached), float(stats.last_step), float(stats.rtol)
    mean = reached / max(int(stats.accepted), 1)
    rejected = int(stats.rejected) / max(attempts, 1)
    seen = f"(mean step {mean:.1e} of the way, last {last:.1e}, {rejected:.0%} rejected)"
    resolution = 10 * float(jnp.finfo(dtype).eps)
    if rtol < resolution:
        return (
            f"The tolerance is the likely cause {seen}: rtol={rtol:.0e} is below what {jnp.dtype(dtype)} resolves "
            f"({resolution:.0e}), so rounding errors are taken for solver errors. Loosen rtol and atol, or use float64."
        )
    if last < 0.02 * mean:
        return (
            f"The steps shrink towards a point {seen}: the solution is likely to run off to infinity there. "
            "End at a smaller s1, or bound the field (tanh)."
        )
    if stats.stiffness is not None and stats.stiffness > 1.5:
        return (
            f"Stiffness is the likely cause {seen}: step times fastest rate is {float(stats.stiffness):.1f}, which is "
            "the limit of stability and not of accuracy, so a looser tolerance would not help much. Use an implicit "
            "method, Solver(diffrax.Kvaerno5(), rtol=1e-3, atol=1e-3), in float64 for tighter tolerances, "
            "or make the field smoother (smaller weights)."
        )
    needed = attempts + int((1 - reached) / max(mean, 1e-30))
    if needed <= 20 * attempts:
        return (
            f"The limit is likely too small {seen}: the steps keep their size and about {needed} would do. "
            f"Raise max_steps, or loosen rtol={rtol:.0e}."
        )
    return (
        f"The tolerance is the likely cause {seen}: at this pace about {needed} steps are needed. "
        f"Loosen rtol={rtol:.0e}, use a method of higher order (dopri8), or raise max_steps."
    )
