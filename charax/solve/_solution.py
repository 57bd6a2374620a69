"""The result of a solve."""

import enum

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from charax.fields._names import Count
from charax.solve._checks import is_concrete


class Outcome(enum.IntEnum):
    """How a solve ended. Under `jit` it is a number in `Solution.outcome`.

    ```python
    from charax.solve import Outcome

    assert Outcome(0).name == "SUCCESS"
    ```
    """

    SUCCESS = 0
    OUT_OF_STEPS = 1
    STEP_VANISHED = 2
    NOT_FINITE = 3
    METHOD_FAILED = 4


class SolveError(RuntimeError):
    """A solve failed. The message names the likely cause and what to do.

    ```python
    import jax.numpy as jnp
    from charax.fields import PlainField
    from charax.solve import SolveError, Solver

    explosion = PlainField(lambda u: 100 * jnp.exp(u), reads=("u",))
    try:
        Solver("euler", steps=4).solve(explosion, jnp.ones((1, 1)))
    except SolveError as error:
        assert "use more steps" in str(error)
    ```
    """


class Stats(eqx.Module):
    """Counts and step sizes of a solve. With `per_sample` steps every entry has one number per sample.

    ```python
    import jax.numpy as jnp
    from charax.fields import PlainField
    from charax.solve import Solver, Stats

    decay = PlainField(lambda u: -u, reads=("u",))
    stats: Stats = Solver("heun", steps=5).solve(decay, jnp.ones((1, 1))).stats
    assert stats.nfe == 10 and stats.accepted == 5
    ```
    """

    nfe: Int[Array, "*batch"] | None
    """The exact number of evaluations of the field in the forward solve; `None` for an implicit method, which
    iterates."""
    accepted: Int[Array, "*batch"]
    """Accepted steps."""
    rejected: Int[Array, "*batch"]
    """Rejected steps."""
    reached: Float[Array, "*batch"]
    """The fraction of the interval from s0 to s1 that was covered."""
    last_step: Float[Array, "*batch"]
    """The size of the last attempted step, as a fraction of the interval."""
    smallest_step: Float[Array, "*batch"]
    """The size of the smallest accepted step, as a fraction of the interval."""
    rtol: Float[Array, "*batch"]
    """The relative tolerance of the solve."""
    stiffness: Float[Array, "*batch"] | None
    """Mean step size times the spectral radius of ∂f/∂u, only for a solve that ran out of steps outside of `jit`. An
    explicit method becomes unstable at about 2 to 4; far below 1, accuracy and not stability limits the steps."""
    max_steps: Count = eqx.field(static=True)
    """The limit on the number of steps."""


class Solution(eqx.Module):
    """The solution of an initial value problem at s1, and at the requested points.

    ```python
    import jax.numpy as jnp
    from charax.fields import PlainField
    from charax.solve import Solution, Solver

    decay = PlainField(lambda u: -u, reads=("u",))
    solution: Solution = Solver().solve(decay, jnp.ones((1, 1)), at=jnp.array([0.0, 0.5]))
    assert solution.u.shape == (1, 1) and solution.trajectory.shape == (2, 1, 1)
    ```
    """

    u: Float[Array, "batch *state"]
    """u(s1). NaN where the solve failed."""
    x: Float[Array, "batch k"] | None
    """x(s1), if the field reads x or the characteristic was requested."""
    s: Float[Array, "points"] | None
    """The requested points."""
    trajectory: Float[Array, "points batch *state"] | None
    """u at the requested points."""
    characteristic: Float[Array, "points batch k"] | None
    """x at the requested points."""
    outcome: Int[Array, "*batch"]
    """An `Outcome`; one per sample with `per_sample` steps."""
    stats: Stats
    """Counts and step sizes."""

    def __repr__(self) -> str:
        shapes = {"u": self.u, "x": self.x, "trajectory": self.trajectory, "characteristic": self.characteristic}
        parts = [f"{name}: {array.dtype}{list(array.shape)}" for name, array in shapes.items() if array is not None]
        if _is_known(self.outcome):
            failed = int(np.count_nonzero(np.asarray(self.outcome)))
            parts.append(f"{failed} of {self.outcome.size} failed" if failed else "success")
        if _is_known(self.stats.nfe):
            parts.append(f"nfe {int(np.max(np.asarray(self.stats.nfe)))}")
        return f"Solution({', '.join(parts)})"

    def check(self) -> "Solution":
        """Raise if the solve failed.

        Returns:
            This solution.

        Raises:
            SolveError: If the solve failed for any sample, with the likely cause and what to do.
        """
        # With NumPy: JAX would compile a program for every operation.
        failed = np.flatnonzero(np.asarray(self.outcome))
        if failed.size == 0:
            return self
        first = int(failed[0])
        select = lambda leaf: np.asarray(leaf)[first] if self.outcome.ndim else np.asarray(leaf)
        which = (
            f" for {failed.size} of {self.outcome.size} samples (the first is number {first})"
            if self.outcome.ndim
            else ""
        )
        outcome, stats = Outcome(int(select(self.outcome))), jax.tree.map(select, self.stats)
        raise SolveError(f"the solve failed{which}: {_explain(outcome, stats, self.u.dtype)}")


def _is_known(value: object) -> bool:
    """Neither left out, nor a shape, nor the tracer of a compiled function."""
    return isinstance(value, jax.Array | np.ndarray) and is_concrete(value)


def _explain(outcome: Outcome, stats: Stats, dtype: jnp.dtype) -> str:
    where = f"{float(stats.reached):.1%} of the interval from s0 to s1"
    match outcome:
        case Outcome.OUT_OF_STEPS:
            return f"max_steps={stats.max_steps} was reached at {where}. {_explain_steps(stats, dtype)}"
        case Outcome.STEP_VANISHED:
            return (
                f"the step size became too small at {where}. The solution diverges there, or the field is not finite: "
                "inspect u near that point, end at a smaller s1, or bound the field (tanh)."
                + (" An implicit method in float32 cannot reach rtol below about 1e-3." if stats.nfe is None else "")
            )
        case Outcome.NOT_FINITE:
            return (
                "u is not finite at s1. The field overflowed or returned NaN, or the fixed steps are too large: use "
                "more steps, or adaptive ones (steps=None), which report where it happens."
            )
        case _:
            return (
                f"the method failed at {where}; for an implicit method, its inner solve did not converge. "
                "Loosen rtol and atol, or try another method."
            )


def _explain_steps(stats: Stats, dtype: jnp.dtype) -> str:
    """Which of tolerance, divergence, stiffness and a low limit is likely, from the recorded steps."""
    attempts = int(stats.accepted) + int(stats.rejected)
    reached, last, rtol = float(stats.reached), float(stats.last_step), float(stats.rtol)
    mean = reached / max(int(stats.accepted), 1)
    rejected = int(stats.rejected) / max(attempts, 1)
    steps = f"(mean step {mean:.1e} of the interval, last {last:.1e}, {rejected:.0%} rejected)"
    resolution = 10 * float(jnp.finfo(dtype).eps)
    if rtol < resolution:
        return (
            f"The tolerance is the likely cause {steps}: rtol={rtol:.0e} is below what {jnp.dtype(dtype)} resolves "
            f"({resolution:.0e}), so rounding errors are taken for solver errors. Loosen rtol and atol, or use float64."
        )
    if last < 0.02 * mean:
        return (
            f"The steps shrink towards a point {steps}: the solution is likely to diverge there. "
            "End at a smaller s1, or bound the field (tanh)."
        )
    if stats.stiffness is not None and stats.stiffness > 1.5:
        return (
            f"Stiffness is the likely cause {steps}: the step size times the spectral radius of ∂f/∂u is "
            f"{float(stats.stiffness):.1f}, which is the limit of stability and not of accuracy, so a looser tolerance "
            "would not help much. Use an implicit method, Solver(diffrax.Kvaerno5(), rtol=1e-3, atol=1e-3), in float64 "
            "for tighter tolerances, or make the field smoother (smaller weights)."
        )
    needed = attempts + int((1 - reached) / max(mean, 1e-30))
    if needed <= 20 * attempts:
        return (
            f"The limit is likely too low {steps}: the step size is steady, and about {needed} steps would suffice. "
            f"Raise max_steps, or loosen rtol={rtol:.0e}."
        )
    return (
        f"The tolerance is the likely cause {steps}: at this step size about {needed} steps are needed. "
        f"Loosen rtol={rtol:.0e}, use a method of higher order (dopri8), or raise max_steps."
    )
