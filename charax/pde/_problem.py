"""The PDE: uₜ + a(x, t, u)·∇u = c(x, t, u) with u(x, 0) = u₀(x)."""

from abc import abstractmethod
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Domain = tuple[tuple[float, float], ...]

Row = Float[Array, "batch"]
Position = Float[Array, "batch d"]
Line = Float[Array, "batch 1"]
Plane = Float[Array, "batch 2"]


def as_domain(domain: Sequence) -> Domain:
    """One (lower, upper) for each space dimension; a single pair is one dimension."""
    try:
        box = np.atleast_2d(np.asarray(domain, float))
    except ValueError:  # rows of different lengths
        box = np.empty((0, 0))
    if box.ndim != 2 or box.shape[0] == 0 or box.shape[1] != 2:
        raise ValueError(f"domain must be one (lower, upper) per space dimension, got {domain}")
    if not (np.isfinite(box).all() and (box[:, 0] < box[:, 1]).all()):
        raise ValueError(f"domain must have finite lower < upper in every dimension, got {domain}")
    return tuple((float(row[0]), float(row[1])) for row in box)


def domain_field(*default: tuple[float, float]):
    """A domain as the field of a problem, with a default."""
    return eqx.field(default=default, static=True, converter=as_domain)


class AbstractProblem(eqx.Module):
    """A first-order quasi-linear PDE and its initial value; all methods take a batch of points.

    Along a characteristic dx/dt = a and du/dt = c, so that the value at a point follows from its foot point, where the
    characteristic through it starts at t = 0. The arrays of a problem are its parameters, which have gradients.

    ```python
    import jax.numpy as jnp
    from charax.pde import AbstractProblem, Advection

    problem: AbstractProblem = Advection(speed=[2.0])
    assert problem.velocity(jnp.zeros((1, 1)), jnp.zeros(1), jnp.zeros(1)) == 2
    ```
    """

    domain: eqx.AbstractVar[Domain]
    """(lower, upper) per space dimension: where the initial value is given and all characteristics start."""

    @property
    def dim(self) -> int:
        """The number d of space dimensions."""
        return len(self.domain)

    @abstractmethod
    def velocity(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch"], u: Float[Array, "batch *n"]
    ) -> Float[Array, "batch d"]:
        """Evaluate the velocity a(x, t, u).

        Args:
            x: Positions.
            t: Times.
            u: Values.

        Returns:
            dx/dt.
        """

    @abstractmethod
    def source(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch"], u: Float[Array, "batch *n"]
    ) -> Float[Array, "batch *n"]:
        """Evaluate the source c(x, t, u).

        Args:
            x: Positions.
            t: Times.
            u: Values.

        Returns:
            du/dt along the characteristic.
        """

    @abstractmethod
    def initial(self, x: Float[Array, "batch d"]) -> Float[Array, "batch *n"]:
        """Evaluate the initial value u(x, 0).

        Args:
            x: Positions.

        Returns:
            The values.
        """

    @abstractmethod
    def exact(self, x: Float[Array, "batch d"], t: Float[Array, "batch"]) -> Float[Array, "batch *n"]:
        """Evaluate the closed-form solution.

        Args:
            x: Positions.
            t: Times.

        Returns:
            The values before the first crossing of characteristics, NaN from there on.
        """


class Problem(AbstractProblem):
    """A problem defined by functions. The parameters of a function that is an equinox module are part of the problem.

    ```python
    import jax.numpy as jnp
    from charax.pde import Problem, solve

    decaying_wind = Problem(
        velocity=lambda x, t, u: jnp.exp(-t)[:, None],
        initial=lambda x: jnp.sin(x[:, 0]),
        domain=(-10.0, 10.0),
    )
    u = solve(decaying_wind, jnp.array([[1.0]]), jnp.array([2.0]))
    assert abs(u[0] - jnp.sin(1 - (1 - jnp.exp(-2)))) < 1e-4
    ```
    """

    # The shapes that these return are checked where they are used, with a message that names the function.
    velocity_function: Callable[..., Float[Array, "batch d"]]
    initial_function: Callable[..., Float[Array, "batch *n"]]
    source_function: Callable[..., Float[Array, "batch *n"]] | None
    exact_function: Callable[..., Float[Array, "batch *n"]] | None
    domain: Domain = eqx.field(static=True)

    def __init__(
        self,
        velocity: Callable[..., Float[Array, "batch d"]],
        initial: Callable[..., Float[Array, "batch *n"]],
        *,
        domain: Sequence,
        source: Callable[..., Float[Array, "batch *n"]] | None = None,
        exact: Callable[..., Float[Array, "batch *n"]] | None = None,
    ):
        """Define a problem.

        Args:
            velocity: `velocity(x, t, u)` returns dx/dt.
            initial: `initial(x)` returns u(x, 0).
            domain: (lower, upper) per space dimension; a single pair is one dimension.
            source: `source(x, t, u)` returns du/dt along a characteristic; zero if left out.
            exact: `exact(x, t)` returns the solution, if it is known.

        Raises:
            ValueError: If the domain is not finite or empty.
        """
        self.velocity_function = velocity
        self.initial_function = initial
        self.source_function = source
        self.exact_function = exact
        self.domain = as_domain(domain)

    def velocity(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch"], u: Float[Array, "batch *n"]
    ) -> Float[Array, "*velocity"]:
        return self.velocity_function(x, t, u)

    def source(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch"], u: Float[Array, "batch *n"]
    ) -> Float[Array, "*source"]:
        return jnp.zeros_like(u) if self.source_function is None else self.source_function(x, t, u)

    def initial(self, x: Float[Array, "batch d"]) -> Float[Array, "*initial"]:
        return self.initial_function(x)

    def exact(self, x: Float[Array, "batch d"], t: Float[Array, "batch"]) -> Float[Array, "batch *n"]:
        if self.exact_function is None:
            raise ValueError("this problem has no closed form: give exact=… to Problem, or compare with solve")
        return self.exact_function(x, t)


def cast(problem: AbstractProblem, dtype: jnp.dtype) -> AbstractProblem:
    """The problem in one precision, so that a parameter of another does not promote the solution."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, problem)
