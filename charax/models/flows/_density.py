"""What every model of a density can do."""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from charax.models.flows._traces import AbstractTrace
from charax.solve import Outcome, SolveError, Solver
from charax.solve._checks import is_concrete


class Assessed(NamedTuple):
    """What a density says of a batch."""

    log_prob: Float[Array, "batch"]
    """NaN where a solve failed."""
    kinetic: Float[Array, "batch"] | None
    """∫ |f|² ds per dimension, if energies were asked for."""
    jacobian: Float[Array, "batch"] | None
    """∫ |∂f/∂u|² ds per dimension, if energies were asked for."""
    outcome: Int[Array, "*batch"]
    nfe: Int[Array, "*batch"] | None
    """Evaluations of the fields, all of them, forward."""


class AbstractDensity(eqx.Module):
    """A density of points or of images that can be trained and sampled."""

    shape: eqx.AbstractVar[tuple[int, ...]]
    """The shape of one sample."""

    @abstractmethod
    def assess(
        self,
        u: Float[Array, "batch *state"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        energies: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> Assessed:
        """The log-density of every sample, and what it cost."""

    @abstractmethod
    def score(self, log_prob: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """What is reported of a log-density, and made small: the negative of it, or bits per dimension."""

    @abstractmethod
    def sample(
        self,
        n: int,
        *,
        key: PRNGKeyArray,
        solver: Solver | None = None,
        context: Float[Array, "batch *_"] | None = None,
        temperature: float = 1.0,
    ) -> Float[Array, "batch *state"]:
        """Draw `n` samples. `temperature` times the base's standard deviation: below 1 they are more typical.

        If the solve of some fails, this raises a `SolveError` that says of how many, and returns none.
        """


def draw_samples(
    carry: Callable[[Solver], tuple[Float[Array, "batch *state"], Int[Array, "*batch"]]], n: int, solver: Solver
) -> Float[Array, "batch *state"]:
    """Samples that `carry` makes with a solver, all of them, or an exception that says how many failed.

    One bad sample makes a solve with one step size for all of them fail; so each is then tried with its own steps.
    """
    samples, outcome = carry(solver)
    if not is_concrete(outcome) or not bool(outcome.any()):
        return samples
    samples, outcome = carry(_each_by_itself(solver))
    failed = jnp.flatnonzero(jnp.broadcast_to(outcome, (n,)))
    if failed.size:
        causes = {Outcome(int(outcome[i])).name.lower().replace("_", " ") for i in failed}
        raise SolveError(
            f"the solve failed for {failed.size} of {n} samples ({', '.join(sorted(causes))}), the first is number "
            f"{int(failed[0])}; none is returned. Lower the temperature, loosen rtol and atol, or raise max_steps"
        )
    return samples


def _each_by_itself(solver: Solver) -> Solver:
    return Solver(
        solver.method,
        rtol=solver.rtol,
        atol=solver.atol,
        steps=solver.steps,
        adjoint=solver.adjoint,
        per_sample=True,
        max_steps=solver.max_steps,
    )


def check_number(n: int, temperature: float) -> int:
    """A number of samples, or a sentence."""
    if n < 1:
        raise ValueError(f"the number of samples must be at least 1, got {n}")
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    return n
