"""A learned equation as a problem of `charax.pde`."""

from collections.abc import Sequence

import equinox as eqx
from jaxtyping import Array, Float

from charax.models._equation_regressor import EquationRegressor
from charax.pde import AbstractProblem
from charax.pde._problem import Domain, as_domain


class LearnedProblem(AbstractProblem):
    """The equation and the initial value that an `EquationRegressor` has learned.

    Its weights are the problem's parameters, so that a shock time has a gradient with respect to them.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import EquationRegressor, LearnedProblem, Scaling
    from charax.pde import characteristics

    model = EquationRegressor.build(Scaling.identity(1, 1), width=8, key=jax.random.key(0))
    problem: LearnedProblem = model.problem((-3.0, 3.0))
    curves = characteristics(problem, jnp.zeros((1, 1)), jnp.array([0.0, 1.0]))
    assert curves.u.shape == (2, 1)
    ```
    """

    model: EquationRegressor
    """The trained model."""
    domain: Domain = eqx.field(static=True)
    """(lower, upper) per space dimension: where the learned initial value is believed."""

    def __init__(self, model: EquationRegressor, domain: Sequence):
        """Make a problem of a model.

        Args:
            model: The trained model.
            domain: (lower, upper) per space dimension.

        Raises:
            ValueError: If the domain is empty, not finite, or has a wrong number of dimensions.
        """
        self.model, self.domain = model, as_domain(domain)
        if len(self.domain) != model.scaling.dim:
            raise ValueError(f"domain has {len(self.domain)} dimensions, but x has {model.scaling.dim}")

    @property
    def _is_scalar(self) -> bool:
        return self.model.scaling.values == 1

    def velocity(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch"], u: Float[Array, "batch *n"]
    ) -> Float[Array, "batch d"]:
        return self.model.velocity(x, t, u[:, None] if self._is_scalar else u)

    def source(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch"], u: Float[Array, "batch *n"]
    ) -> Float[Array, "batch *n"]:
        return self.model.source(x, t, u[:, None])[:, 0] if self._is_scalar else self.model.source(x, t, u)

    def initial(self, x: Float[Array, "batch d"]) -> Float[Array, "batch *n"]:
        u = self.model.initial(x)
        return u[:, 0] if self._is_scalar else u

    def exact(self, x: Float[Array, "batch d"], t: Float[Array, "batch"]) -> Float[Array, "batch *n"]:
        raise ValueError("a learned equation has no closed form: compare with charax.pde.solve")
