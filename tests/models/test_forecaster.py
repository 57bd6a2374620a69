"""Forecasts of a known field."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import PlainField, Timed
from charax.models import Forecaster, ForecasterDesign, Scaling
from charax.nn import count_parameters
from charax.solve import Solver

DECAY = Timed(PlainField(lambda u: -u, reads=("u",)), shows_time=False)


def test_series_go_to_their_own_irregular_times_from_their_own_values():
    model = Forecaster(DECAY, jnp.zeros(1), 0, None, Scaling.identity(0, 1))
    start, t = (np.array(values, np.float32) for values in ([[1.0], [2.0], [3.0]], [0.1, 2.0, 0.0]))
    forecast = jax.jit(lambda start, t: model(start, t, solver=Solver("midpoint", steps=100)))(start, t)
    np.testing.assert_allclose(forecast.mean[:, 0], start[:, 0] * np.exp(-t), rtol=1e-3)
    for level, quantile in ((0.95, 1.959964), (0.5, 0.674490)):
        lower, upper = forecast.prediction_interval(level)
        np.testing.assert_allclose((upper - lower) / 2, quantile, rtol=1e-6)
    with pytest.raises(ValueError, match="between 0 and 1"):
        forecast.prediction_interval(95.0)


def test_damped_time_starts_like_any_other_and_levels_off():
    model = Forecaster(DECAY, jnp.zeros(1), 0, 0.5, Scaling((), (), 2.0, (0.0,), (1.0,)))
    times = model.integration_time(jnp.array([0.0, 0.002, 1000.0]))
    np.testing.assert_allclose(times, [0.0, 0.001, 0.5], rtol=5e-3)


def test_context_changes_the_forecast():
    @jax.jit
    def forecast(context):
        model = ForecasterDesign("c-node", width=4, augment_dim=0).build(Scaling.identity(1, 1), key=jax.random.key(0))
        return model(jnp.ones((2, 1)), jnp.ones(2), context, solver=Solver("euler", steps=1))

    mean = forecast(jnp.array([[0.0], [1.0]])).mean
    assert mean[0, 0] != mean[1, 0]


@pytest.mark.parametrize(("method", "width", "parameters"), [("c-node", 64, 9617), ("node", 96, 9698)])
def test_sizes_are_at_most_the_papers(method, width, parameters):
    build = ForecasterDesign(method, width, augment_dim=0).build
    model = eqx.filter_eval_shape(build, Scaling.identity(0, 1), key=jax.random.key(0))
    assert count_parameters(model) == parameters <= 9744


@pytest.mark.parametrize("wrong", [{"damping": 0.0}, {"width": 0}, {"augment_dim": -1}])
def test_sizes_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        ForecasterDesign(**wrong)
