"""Classification: a neural ODE and a readout."""

import equinox as eqx
from jaxtyping import Array, Float

from charax.fields import describe_field
from charax.models._neural_ode import NeuralODE
from charax.nn import Network, summarize
from charax.solve import Solution, Solver


class Classifier(eqx.Module):
    """Logits from the final state of a neural ODE. The field may read the data itself, as its context.

    ```python
    import jax
    from charax.models import Classifier, paper_classifier

    model = paper_classifier("mnist", "c-node", key=jax.random.key(0))
    assert isinstance(model, Classifier)
    ```
    """

    ode: NeuralODE
    """Maps the data to the final state."""
    head: Network
    """Maps the final state to logits."""
    stem: Network | None = None
    """Maps the data to what the neural ODE takes; None for the data itself."""

    def __repr__(self) -> str:
        return summarize(self, describe_field(self.ode.field))

    def __call__(
        self, data: Float[Array, "batch *data"], *, solver: Solver | None = None
    ) -> tuple[Float[Array, "batch classes"], Solution]:
        """Compute logits.

        Args:
            data: A batch of inputs.
            solver: How to integrate; `Solver()` by default.

        Returns:
            The logits, and the solution with its counts.
        """
        data = data if self.stem is None else self.stem(data)
        solution = self.ode(data, solver=solver, context=data if "context" in self.ode.field.reads else None)
        return self.head(solution.u), solution
