"""The neural ODE block that models are built from."""

import equinox as eqx
from jaxtyping import Array, Float

from charax.fields import AbstractField, Scalar, describe_field
from charax.models._lift import AbstractLift, Identity
from charax.nn import summarize
from charax.solve import Solution, Solver


class NeuralODE(eqx.Module):
    """A lift and a field: maps data to the final state of an initial value problem.

    The solver is not part of the model but an argument of the call, so that a model can be trained with fixed steps and
    evaluated with adaptive ones, and no optimizer ever sees a tolerance.

    ```python
    import jax
    from charax.fields import PlainField
    from charax.models import NeuralODE, ZeroAugment
    from charax.nn import mlp
    from charax.solve import Solver

    model = NeuralODE(PlainField(mlp([1 + 5, 32, 5], key=jax.random.key(0))), ZeroAugment(3))
    solution = model(jax.numpy.ones((4, 2)), solver=Solver("tsit5", rtol=1e-3, atol=1e-3))
    assert solution.u.shape == (4, 5)
    ```
    """

    field: AbstractField
    lift: AbstractLift

    def __init__(self, field: AbstractField, lift: AbstractLift | None = None):
        """Store the parts.

        Args:
            field: The field that is integrated.
            lift: Maps the data to the initial state; the identity by default.
        """
        self.field = field
        self.lift = Identity() if lift is None else lift

    def __repr__(self) -> str:
        lift = "" if isinstance(self.lift, Identity) else f", {type(self.lift).__name__}"
        return summarize(self, f"{describe_field(self.field)}{lift}")

    def __call__(
        self,
        data: Float[Array, "batch *data"],
        *,
        solver: Solver | None = None,
        context: Float[Array, "batch *_"] | None = None,
        s0: Scalar = 0.0,
        s1: Scalar = 1.0,
        at: Float[Array, "points"] | None = None,
        x0: Float[Array, "batch k"] | None = None,
        with_characteristic: bool = False,
    ) -> Solution:
        """Lift the data and integrate.

        Args:
            data: A batch of inputs.
            solver: How to integrate; `Solver()` by default.
            context: As in `Solver.solve`.
            s0: As in `Solver.solve`.
            s1: As in `Solver.solve`.
            at: As in `Solver.solve`.
            x0: As in `Solver.solve`.
            with_characteristic: As in `Solver.solve`.

        Returns:
            The solution.
        """
        return (solver or Solver()).solve(
            self.field,
            self.lift(data),
            context=context,
            s0=s0,
            s1=s1,
            at=at,
            x0=x0,
            with_characteristic=with_characteristic,
        )
