"""Forecasters that are cross-fitted: each has not seen a part of the training data, on which it is validated."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from charax.models._window_forecaster import WindowDesign, WindowForecast, WindowForecaster, forecast_losses
from charax.nn import split_key, summarize
from charax.solve import Solver


class WindowEnsemble(eqx.Module):
    """Forecasters of one design, whose forecasts are averaged.

    ```python
    import jax
    from charax.models import WindowDesign, WindowEnsemble

    model = WindowEnsemble.build(WindowDesign(width=4, state_dim=3), 3, 2, 1, key=jax.random.key(0))
    assert model.size == 3 and model.calibration.tolist() == [1, 1]
    ```
    """

    members: WindowForecaster
    """The forecasters: arrays with the members in their first axis."""

    @classmethod
    def build(
        cls, design: WindowDesign, members: int, values: int, known: int, *, key: PRNGKeyArray
    ) -> "WindowEnsemble":
        """Build an ensemble.

        Args:
            design: The sizes of each forecaster.
            members: The number of forecasters.
            values: The number of values to forecast.
            known: The number of columns that are known at all times.
            key: Random key of the initial weights.

        Returns:
            The ensemble.
        """
        keys = [key] if members == 1 else split_key(key, members)
        built = [design.build(values, known, key=each) for each in keys]
        stack = lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0]
        return cls(jax.tree.map(stack, *built))

    def __repr__(self) -> str:
        return summarize(self, f"{self.size} members, {self.member(0)}")

    @property
    def size(self) -> int:
        """The number of forecasters."""
        return self.members.log_calibration.shape[0]

    @property
    def calibration(self) -> Float[Array, "values"]:
        """The factor of the standard deviations."""
        return jnp.exp(jax.lax.stop_gradient(self.members.log_calibration[0]))

    @property
    def error_ratio(self) -> Float[Array, "values"]:
        """The size of errors, in units of the standard deviations, which are wider if intervals have to be; 1 before it
        is measured."""
        return jnp.exp(jax.lax.stop_gradient(self.members.log_error_ratio[0]))

    def member(self, number: int) -> WindowForecaster:
        """One of the forecasters.

        Args:
            number: Its number.

        Returns:
            The forecaster.
        """
        return jax.tree.map(lambda leaf: leaf[number] if eqx.is_array(leaf) else leaf, self.members)

    def scale_correction(self, factor: float) -> "WindowEnsemble":
        """Shrink the differences of the forecasts from the anchors.

        Args:
            factor: The factor of these differences; 0 leaves the anchors alone.

        Returns:
            The ensemble that is closer to the anchors.
        """
        scaled = eqx.filter_vmap(lambda member: member.scale_correction(factor))(self.members)
        return eqx.tree_at(lambda it: it.members, self, scaled)

    def calibrate(self, factor: Float[Array, "values"], error_ratio: Float[Array, "values"]) -> "WindowEnsemble":
        """Scale the standard deviations, as measured on data that the members have not seen.

        Args:
            factor: The factor of the standard deviations of each value.
            error_ratio: The root mean squared error of each value, in units of the scaled standard deviations.

        Returns:
            The calibrated ensemble.
        """
        shifted = self.members.log_calibration + jnp.log(factor)
        ratios = jnp.zeros_like(self.members.log_error_ratio) + jnp.log(error_ratio)
        where = lambda it: (it.members.log_calibration, it.members.log_error_ratio)
        return eqx.tree_at(where, self, (shifted, ratios))

    def __call__(
        self,
        past_times: Float[Array, "batch history"],
        past_values: Float[Array, "batch history channels"],
        past_lengths: Int[Array, "batch"],
        times: Float[Array, "batch times"],
        known: Float[Array, "batch times known"],
        anchor: Float[Array, "batch members times values"],
        *,
        solver: Solver | None = None,
        key: PRNGKeyArray | None = None,
    ) -> WindowForecast:
        """Forecast with every member.

        Args:
            past_times: As in `WindowForecaster`.
            past_values: As in `WindowForecaster`.
            past_lengths: As in `WindowForecaster`.
            times: As in `WindowForecaster`.
            known: As in `WindowForecaster`.
            anchor: What each member corrects, or what joins its forecast.
            solver: As in `WindowForecaster`.
            key: As in `WindowForecaster`; all members draw with the same key.

        Returns:
            The forecasts, with the members in the first axis of every array.
        """

        def run(member: WindowForecaster, anchor: Array) -> WindowForecast:
            return member(past_times, past_values, past_lengths, times, known, anchor, solver=solver, key=key)

        return eqx.filter_vmap(run, in_axes=(eqx.if_array(0), 1))(self.members, anchor)

    def losses(
        self,
        forecasts: WindowForecast,
        values: Float[Array, "batch times values"],
        fold: Int[Array, "batch times"],
    ) -> Float[Array, "batch"]:
        """The losses of the values that the members may learn, averaged over the members.

        Args:
            forecasts: What a call returned.
            values: What was observed, in scaled units; NaN where it is missing.
            fold: The member that must not learn a value; -1 for none.

        Returns:
            The loss of each window.
        """
        hidden = fold[None, :, :, None] == jnp.arange(self.size)[:, None, None, None]
        return jax.vmap(forecast_losses)(forecasts, jnp.where(hidden, jnp.nan, values)).mean(axis=0)


def combine_forecasts(
    forecasts: WindowForecast, fold: Int[Array, "batch times"]
) -> tuple[Float[Array, "batch times values"], Float[Array, "batch times values"]]:
    """Average over the members, or take the one that has not learned a value.

    Args:
        forecasts: Forecasts with the members in their first axis.
        fold: The member that has not learned a value; -1 to average over all of them.

    Returns:
        Means and standard deviations; those of an average include how much the members differ.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import WindowDesign, WindowEnsemble, combine_forecasts

    model = WindowEnsemble.build(WindowDesign(width=4, state_dim=3), 2, 1, 0, key=jax.random.key(0))
    past = jnp.zeros((1, 1)), jnp.ones((1, 1, 1)), jnp.array([1])
    out = model(*past, jnp.ones((1, 1)), jnp.zeros((1, 1, 0)), jnp.ones((1, 2, 1, 1)))
    mean, _ = combine_forecasts(out, jnp.array([[1]]))
    assert mean == out.mean[1]
    ```
    """
    members = forecasts.mean.shape[0]
    own = fold[None] == jnp.arange(members)[:, None, None]
    weights = jnp.where(fold >= 0, own, 1 / members)[..., None]
    mean = (weights * forecasts.mean).sum(axis=0)
    variance = (weights * (jnp.square(forecasts.std) + jnp.square(forecasts.mean - mean))).sum(axis=0)
    return mean, jnp.sqrt(variance)
