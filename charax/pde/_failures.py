"""Points without a single value, as exceptions that name the point and the fix."""

import numpy as np
from jax import lax
from jaxtyping import Array

from charax.pde._foot import PointStatus
from charax.pde._problem import AbstractProblem
from charax.pde._shock import shock_time
from charax.solve import Solver
from charax.solve._roots import freeze


class FootPointError(RuntimeError):
    """The characteristic through a point was not found.

    ```python
    import jax.numpy as jnp
    from charax.pde import Advection, FootPointError, solve

    try:
        solve(Advection(), jnp.array([[50.0]]), jnp.array([0.0]))
    except FootPointError as error:
        assert "widen the problem's domain" in str(error)
    ```
    """


class MultivaluedError(RuntimeError):
    """Several characteristics reach a point, each with its own value.

    ```python
    import jax.numpy as jnp
    from charax.pde import Burgers, MultivaluedError, Sine, solve

    try:
        solve(Burgers(profile=Sine()), jnp.array([[3.0]]), jnp.array([1.5]))
    except MultivaluedError as error:
        assert abs(error.shock_time - 1) < 1e-3 and error.affected.all()
    ```
    """

    def __init__(self, message: str, shock_time: float, affected: np.ndarray):
        """Describe the points.

        Args:
            message: The message.
            shock_time: The time at which characteristics first cross.
            affected: A mask of the points that have several values.
        """
        super().__init__(message)
        self.shock_time = shock_time
        """The time at which characteristics first cross."""
        self.affected = affected
        """A mask of the points that have several values."""


def describe_point(x: np.ndarray, t: np.ndarray, which: np.ndarray) -> str:
    """The first of the points in a mask, in words."""
    first = int(np.argmax(which))
    coordinates = ", ".join(f"{value:.6g}" for value in x[first])
    more = f" (the first of {which.sum()} such points)" if which.sum() > 1 else ""
    return f"point {first} at x=({coordinates}), t={t[first]:.6g}{more}"


_REASONS = {
    PointStatus.OUTSIDE: "is reached by no characteristic from the domain {domain}: widen the problem's domain",
    PointStatus.NOT_CONVERGED: (
        "has no foot point that the root finder could converge to. Close to a crossing the foot points nearly "
        "coincide; elsewhere allow more steps or looser tolerances, root_finder=optimistix.Newton(rtol=…, atol=…)"
    ),
    PointStatus.NOT_INTEGRATED: (
        "lies on a characteristic that the solver could not integrate to its end: u may diverge before, "
        "or the solver needs more max_steps or looser tolerances"
    ),
}


def raise_if_failed(problem: AbstractProblem, x: Array, t: Array, status: Array, solver: Solver) -> None:
    """Raise for the first kind of failure among the points."""
    codes = np.asarray(status)
    if not codes.any():
        return
    positions, times = np.asarray(lax.stop_gradient(x)), np.asarray(lax.stop_gradient(t))
    multivalued = codes == PointStatus.MULTIVALUED
    if multivalued.any():
        shock = float(shock_time(freeze(problem), horizon=float(times[multivalued].max()), solver=solver))
        affected = f"{multivalued.sum()} of {multivalued.size} points"
        first = describe_point(positions, times, multivalued)
        if problem.dim == 1:
            text = f"several characteristics reach {affected}, the first being {first}"
            remedy = "Ask for earlier times, or for all values with allow_multivalued=True."
        else:
            text = f"{affected} may be reached by several characteristics, {first}"
            remedy = "Ask for earlier times, or shrink the problem's domain to where the characteristics do not cross."
        cause = (
            f"characteristics first cross at t={shock:.6g}" if np.isfinite(shock) else "neighbors have crossed there"
        )
        raise MultivaluedError(f"{text}: {cause}. {remedy}", shock, multivalued)
    for code, reason in _REASONS.items():
        which = codes == code
        if which.any():
            raise FootPointError(f"{describe_point(positions, times, which)} {reason.format(domain=problem.domain)}")
