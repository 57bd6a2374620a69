"""The interface of flows, and their result."""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from charax.models.flows._traces import AbstractTrace
from charax.models.matching import FlowMatching
from charax.solve import Outcome, SolveError, Solver
from charax.solve._checks import is_concrete


class FlowResult(eqx.Module):
    """A batch mapped through a flow, with its log-density.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models.flows import VectorFlowDesign
    from charax.solve import Solver

    flow = VectorFlowDesign("node", width=4).build((2,), key=jax.random.key(0))
    result = flow.forward(jnp.ones((3, 2)), solver=Solver("euler", steps=2))
    assert jnp.allclose(result.log_prob, flow.base_log_prob(result.u) + result.log_det)
    ```
    """

    u: Float[Array, "batch *state"]
    """The points at the other end of the flow; NaN where the solve failed."""
    log_det: Float[Array, "batch"]
    """log|det| of the Jacobian of the map from the given points to `u`."""
    log_prob: Float[Array, "batch"]
    """The log-density at the data end: of the given points for `forward`, of `u` for `inverse`; NaN where the solve
    failed."""
    kinetic: Float[Array, "batch"] | None
    """∫ |f|² ds per dimension, if computed `with_energies`."""
    jacobian_norm: Float[Array, "batch"] | None
    """∫ |∂f/∂u|² ds per dimension, the squared Frobenius norm, as exact as the trace; if computed `with_energies`."""
    outcome: Int[Array, "*batch"]
    """An `Outcome` of the solve, or the first failure of several solves; one per sample with `per_sample` steps."""
    nfe: Int[Array, "*batch"] | None
    """The number of evaluations of the vector fields in the forward solves; None for an implicit method."""


class AbstractFlow(eqx.Module):
    """A normalizing flow of points or images: a density that can be evaluated, trained and sampled from.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models.flows import AbstractFlow, VectorFlowDesign
    from charax.solve import Solver

    flow: AbstractFlow = VectorFlowDesign("node", width=4).build((2,), key=jax.random.key(0))
    result = flow.evaluate(jnp.ones((3, 2)), solver=Solver("euler", steps=2))
    assert (flow.loss(result.log_prob) == -result.log_prob).all()
    ```
    """

    shape: eqx.AbstractVar[tuple[int, ...]]
    """The shape of one sample."""

    @abstractmethod
    def evaluate(
        self,
        u: Float[Array, "batch *state"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        with_energies: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> FlowResult:
        """Map data, as it is stored, to the base distribution. Images are dequantised first.

        Args:
            u: A batch of samples.
            solver: How to integrate; `Solver()` by default.
            trace: How to compute the trace of the field's Jacobian; the flow's default if None.
            context: One row per sample for a field that reads it, such as one-hot classes.
            with_energies: Whether to integrate the two regularization terms, too.
            key: Random key of an estimated trace and of dequantisation.

        Returns:
            The points in the base distribution with their log-densities.
        """

    @abstractmethod
    def match(
        self,
        u: Float[Array, "batch *state"],
        matching: FlowMatching,
        *,
        source: Float[Array, "batch *state"] | None = None,
        context: Float[Array, "batch *_"] | None = None,
        key: PRNGKeyArray,
    ) -> Float[Array, "batch"]:
        """Compute the loss of flow matching for data as it is stored. Nothing is solved.

        Args:
            u: A batch of samples.
            matching: Paths and times.
            source: The partner of every sample; drawn from the base distribution if None.
            context: One row per sample for a field that reads it.
            key: Random key of the times, the partners and of dequantisation.

        Returns:
            The loss of every sample.

        Raises:
            ValueError: If the flow is not that of one field.
        """

    @abstractmethod
    def loss(self, log_prob: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """Convert log-densities to the loss that is minimised and reported.

        Args:
            log_prob: Log-densities of samples, as in `FlowResult`.

        Returns:
            Negative log-likelihoods, or bits per dimension of images.
        """

    @abstractmethod
    def sample(
        self,
        n: int,
        *,
        key: PRNGKeyArray,
        solver: Solver | None = None,
        context: Float[Array, "batch *_"] | None = None,
        temperature: float = 1.0,
        guidance: float = 0.0,
    ) -> Float[Array, "batch *state"]:
        """Draw samples.

        Args:
            n: The number of samples.
            key: Random key.
            solver: How to integrate; `Solver()` by default.
            context: One row per sample for a field that reads it.
            temperature: Factor of the base distribution's standard deviation; samples below 1 are more typical.
            guidance: The weight of `GuidedField`: above 0, samples are more typical of their context. For a field
                that was trained with contexts that were hidden.

        Returns:
            The samples.

        Raises:
            SolveError: If the solve of any sample fails; the message counts them, and none is returned.
        """

    @property
    @abstractmethod
    def noise_shape(self) -> tuple[int, ...]:
        """The shape of a point of the base distribution."""

    @abstractmethod
    def generate(
        self,
        noise: Float[Array, "batch *noise"],
        *,
        solver: Solver | None = None,
        context: Float[Array, "batch *_"] | None = None,
    ) -> Float[Array, "batch *state"]:
        """Map standard normal noise to data as it is stored, without log-densities. Images are quantised.

        Args:
            noise: One point per sample.
            solver: How to integrate; `Solver()` by default.
            context: One row per sample for a field that reads it.

        Returns:
            The samples; NaN where the solve failed.
        """


def sample_with_retry(
    solve: Callable[[Solver], tuple[Float[Array, "batch *state"], Int[Array, "*batch"]]], n: int, solver: Solver
) -> Float[Array, "batch *state"]:
    """Return all `n` samples that `solve` computes with a solver, or raise an exception that counts the failures.

    With one step size for the whole batch, one bad sample fails the whole solve; so each is then retried with steps of
    its own.
    """
    samples, outcome = solve(solver)
    if not is_concrete(outcome) or not bool(outcome.any()):
        return samples
    samples, outcome = solve(_per_sample(solver))
    failed = jnp.flatnonzero(jnp.broadcast_to(outcome, (n,)))
    if failed.size:
        causes = {Outcome(int(outcome[i])).name.lower().replace("_", " ") for i in failed}
        raise SolveError(
            f"the solve failed for {failed.size} of {n} samples ({', '.join(sorted(causes))}), the first is number "
            f"{int(failed[0])}; none is returned. Lower the temperature, loosen rtol and atol, or raise max_steps"
        )
    return samples


def _per_sample(solver: Solver) -> Solver:
    return Solver(
        solver.method,
        rtol=solver.rtol,
        atol=solver.atol,
        steps=solver.steps,
        adjoint=solver.adjoint,
        per_sample=True,
        max_steps=solver.max_steps,
    )


def check_sampling(n: int, temperature: float, guidance: float = 0.0) -> int:
    """Check the arguments of `sample`, and return `n`."""
    if not guidance >= 0:
        raise ValueError(f"guidance must be at least 0, got {guidance}")
    if n < 1:
        raise ValueError(f"the number of samples must be at least 1, got {n}")
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    return n
