"""Models of series that integrate a field: along the observed path, or from a summary of the series."""

from dataclasses import replace
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from charax.fields import Interpolation, ObservedPath, describe_field, log_signature
from charax.models._neural_ode import NeuralODE
from charax.models._series_model import AbstractSeriesModel, SeriesOutput, first_values, summary_features
from charax.nn import Network, summarize
from charax.solve import Solution, Solver

DEFAULT_STEPS = 8
"""Fixed steps of a field that does not follow the observations."""


class PathReading(eqx.Module):
    """How observations become a path.

    ```python
    import jax.numpy as jnp
    from charax.models import PathReading

    reading = PathReading("linear")
    times, values = jnp.array([[0.0, 1.0]]), jnp.array([[[0.0], [2.0]]])
    path = reading(times, values, jnp.array([2]), aligned=False)
    assert reading.channels(1) == path.channels == 2  # the time, and the one that is observed
    ```
    """

    interpolation: Interpolation = eqx.field(static=True, default="hermite")
    """The kind of interpolation."""
    count_scale: float | None = eqx.field(static=True, default=None)
    """The factor of the channels that count the observations of each channel; None for no such channels."""
    windows: int | None = eqx.field(static=True, default=None)
    """The number of windows of the log-ODE method; None for the path itself."""
    depth: Literal[1, 2] = eqx.field(static=True, default=2)
    """The depth of the log-signatures."""

    def channels(self, observed: int) -> int:
        """The number of channels of the path, without areas.

        Args:
            observed: The number of observed channels.

        Returns:
            One for the time, those observed, and one more for each that is counted.
        """
        return 1 + observed * (1 if self.count_scale is None else 2)

    def __call__(
        self,
        times: Float[Array, "batch length"],
        values: Float[Array, "batch length channels"],
        lengths: Int[Array, "batch"],
        *,
        aligned: bool,
    ) -> ObservedPath:
        """Interpolate.

        Args:
            times: The times of the observations.
            values: The observations.
            lengths: The number of observations of each series.
            aligned: Whether fixed steps follow, which are to end at the observations.

        Returns:
            The paths.
        """
        path = ObservedPath.interpolate(
            times,
            values,
            lengths,
            interpolation=self.interpolation,
            counts=self.count_scale is not None,
            aligned=aligned and self.windows is None,
        )
        if self.count_scale is not None:
            observed = values.shape[2]
            path = path.scale(jnp.asarray([1.0] * (1 + observed) + [self.count_scale] * observed))
        return path if self.windows is None else log_signature(path, self.windows, depth=self.depth)


class ObservedSeriesModel(AbstractSeriesModel):
    """A neural CDE, or a hybrid with learned directions: the final state of the path decides.

    ```python
    import jax
    from charax.models import ObservedSeriesModel, SeriesDesign

    model = SeriesDesign("hybrid", width=4).build(3, 2, key=jax.random.key(0))
    assert isinstance(model, ObservedSeriesModel)
    ```
    """

    ode: NeuralODE
    """The start of the path lifted to the initial state, and the field."""
    head: Network
    """Maps the final state to the outputs."""
    reading: PathReading
    """How observations become a path."""
    averages: bool = eqx.field(static=True, default=False)
    """Whether the field accumulates the state over time, and the head reads its mean next to the last one."""
    summary_start: bool = eqx.field(static=True, default=False)
    """Whether the initial state is made from a summary of the series, too."""

    def __repr__(self) -> str:
        return summarize(self, describe_field(self.ode.field))

    def __call__(
        self,
        times: Float[Array, "batch length"],
        values: Float[Array, "batch length channels"],
        lengths: Int[Array, "batch"],
        *,
        solver: Solver | None = None,
    ) -> SeriesOutput:
        """Integrate along the path.

        Args:
            times: The times of the observations, in units in which series last about 1.
            values: Standardized observations; NaN where one is missing.
            lengths: The number of observations of each series.
            solver: How to integrate. Its `steps` are those between two observations, or of a window; one midpoint step
                by default.

        Returns:
            The outputs.
        """
        solution = self.solve(times, values, lengths, solver=solver)
        u = solution.u
        if self.averages:
            u, total = jnp.split(u, 2, axis=1)
            duration = jnp.take_along_axis(times, lengths[:, None] - 1, axis=1) - times[:, :1]
            # The mean of a state that never moved is the state.
            u = jnp.concatenate([u, jnp.where(duration > 0, total / jnp.where(duration > 0, duration, 1), u)], axis=1)
        return SeriesOutput.of(self.head(u), solution)

    def solve(
        self,
        times: Float[Array, "batch length"],
        values: Float[Array, "batch length channels"],
        lengths: Int[Array, "batch"],
        *,
        solver: Solver | None = None,
        at: Float[Array, "points"] | None = None,
    ) -> Solution:
        """Integrate along the path, and keep the states on the way if `at` is given.

        Args:
            times: As in the call.
            values: As in the call.
            lengths: As in the call.
            solver: As in the call.
            at: Points between 0 and 1 at which the state is returned.

        Returns:
            The solution.
        """
        solver = solver or Solver("midpoint", steps=1)
        path = self.reading(times, values, lengths, aligned=solver.steps is not None)
        if solver.steps is not None:
            solver = replace(solver, steps=solver.steps * path.num_pieces)
        start = path.start[:, : self.reading.channels(values.shape[2])]
        field, summary = self.ode.field, summary_features(times, values, lengths)
        state = self.ode.lift(jnp.concatenate([start, summary], axis=1) if self.summary_start else start)
        if self.averages:
            state = jnp.concatenate([state, jnp.zeros_like(state)], axis=1)
        reads_summary = "u" in field.velocity.reads  # as the learned directions of a hybrid do  # pyright: ignore[reportAttributeAccessIssue]
        x0 = None
        if "x" in field.reads:
            # Learned directions, and areas, start at 0.
            x0 = jnp.pad(start, ((0, 0), (0, field.characteristic_dim - start.shape[1])))
        solution = solver.solve(field, state, context=path.context(summary if reads_summary else None), x0=x0, at=at)
        if solution.trajectory is None or not self.averages:
            return solution
        own = solution.trajectory[..., : state.shape[1] // 2]
        return eqx.tree_at(lambda it: it.trajectory, solution, own)


class SummarySeriesModel(AbstractSeriesModel):
    """A neural ODE from the first observations; its learned characteristic may read a summary of the series.

    ```python
    import jax
    from charax.models import SeriesDesign, SummarySeriesModel

    model = SeriesDesign("node", width=4).build(3, 2, key=jax.random.key(0))
    assert isinstance(model, SummarySeriesModel)
    ```
    """

    ode: NeuralODE
    """The first observations lifted to the initial state, and the field."""
    head: Network
    """Maps the final state to the outputs."""

    def __repr__(self) -> str:
        return summarize(self, describe_field(self.ode.field))

    def __call__(
        self,
        times: Float[Array, "batch length"],
        values: Float[Array, "batch length channels"],
        lengths: Int[Array, "batch"],
        *,
        solver: Solver | None = None,
    ) -> SeriesOutput:
        """Integrate from the first observations.

        Args:
            times: The times of the observations, in units in which series last about 1.
            values: Standardized observations; NaN where one is missing.
            lengths: The number of observations of each series.
            solver: How to integrate; 8 midpoint steps by default.

        Returns:
            The outputs.
        """
        solution = self.solve(times, values, lengths, solver=solver)
        return SeriesOutput.of(self.head(solution.u), solution)

    def solve(
        self,
        times: Float[Array, "batch length"],
        values: Float[Array, "batch length channels"],
        lengths: Int[Array, "batch"],
        *,
        solver: Solver | None = None,
        at: Float[Array, "points"] | None = None,
    ) -> Solution:
        """Integrate from the first observations, and keep the states on the way if `at` is given.

        Args:
            times: As in the call.
            values: As in the call.
            lengths: As in the call.
            solver: As in the call.
            at: Points between 0 and 1 at which the state, and a learned characteristic, is returned.

        Returns:
            The solution.
        """
        field = self.ode.field
        summary = summary_features(times, values, lengths) if "context" in field.reads else None
        solver = solver or Solver("midpoint", steps=DEFAULT_STEPS)
        return self.ode(
            first_values(values, lengths),
            context=summary,
            solver=solver,
            at=at,
            with_characteristic=at is not None and field.characteristic_dim > 0,
        )
