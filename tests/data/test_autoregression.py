"""The linear forecast that a forecaster corrects."""

import jax.numpy as jnp
import numpy as np
import pytest

from charax.data import Autoregression, fit_autoregressions, load_forecast_windows
from charax.data._autoregression import _average
from charax.train import from_json, to_json


def write(path, series):
    rows = [
        f"{i},{t:.6f},{u:.8f}" for i, (times, values) in enumerate(series) for t, u in zip(times, values, strict=True)
    ]
    path.write_text("\n".join(["series,time,u", *rows]))
    return str(path)


def oscillations(irregular: float):
    generator = np.random.default_rng(0)
    for phase in range(12):
        t = np.arange(30) * 0.3 + irregular * generator.uniform(-0.1, 0.1, 30)
        yield t, np.sin(t + phase)


@pytest.mark.parametrize(("irregular", "error"), [(0.0, 0.02), (1.0, 0.1)])
def test_a_linear_equation_is_forecast_also_at_irregular_times(tmp_path, irregular, error):
    path = write(tmp_path / "waves.csv", oscillations(irregular))
    data = load_forecast_windows(path, history=6, horizon=4, hold_out="series")
    last = Autoregression.persistence(1).forecast(*data.test[:5])
    full = data.test.past_lengths == 6  # a single value does not say where an oscillation goes
    wrong = lambda forecast: np.sqrt(np.nanmean((forecast - data.test.values)[full] ** 2))
    assert wrong(data.test.anchor[:, 0]) < error < 0.5 < wrong(last)


def test_a_damped_oscillation_is_continued_from_its_last_state():
    """u' = A u, whose solution is exp(−t/δ) (cos ωt u₀ + sin ωt R u₀)."""
    damping, frequency = 3.0, 1.7
    rotation = np.array([[0.5, 1.25], [-1.0, -0.5]])  # its square is −1
    state, asked = np.array([0.8, -0.3]), np.array([[0.2, 1.0, 2.9, 20.0]])
    columns = lambda rows: np.concatenate([np.zeros((2, 1)), rows, np.zeros((2, 1))], axis=1)
    weights = np.concatenate([columns(rows) for rows in (np.zeros((2, 2)), np.eye(2), rotation)], axis=1)
    linear = Autoregression(1, (), (), tuple(map(tuple, weights.tolist())), (frequency,), damping)
    found = linear.forecast(np.zeros((1, 1)), state[None, None], np.array([1]), asked, np.zeros((1, 4, 0)))
    turned = lambda t: np.cos(frequency * t) * np.eye(2) + np.sin(frequency * t) * rotation
    np.testing.assert_allclose(found[0], [np.exp(-t / damping) * turned(t) @ state for t in asked[0]], atol=1e-12)
    assert from_json(Autoregression, to_json(linear)) == linear


def test_validation_chooses_oscillations_where_they_are_better(tmp_path, monkeypatch):
    """More than one period is ahead, from noisy observations at irregular times."""
    generator = np.random.default_rng(7)
    series = []
    for phase in generator.uniform(0, 6, 24):
        t = np.cumsum(generator.uniform(0.1, 0.7, 40))
        series.append((t, np.exp(-0.05 * t) * np.sin(1.3 * t + phase) + 0.02 * generator.normal(size=40)))
    path = write(tmp_path / "damped.csv", series)

    def measure():
        data = load_forecast_windows(path, history=8, horizon=12, hold_out="series", folds=4)
        error = np.sqrt(np.nanmean((data.test.anchor.mean(axis=1) - data.test.values)[data.test.origin > 4] ** 2))
        return error, data.units.autoregressions[0].frequencies

    error, frequencies = measure()
    monkeypatch.setattr("charax.data._autoregression._OSCILLATIONS", ())
    relaxed, none = measure()
    assert frequencies
    assert not none
    assert error < 0.75 * relaxed


def test_validation_chooses_the_last_value_where_the_past_says_no_more(tmp_path):
    generator = np.random.default_rng(1)
    series = [(np.arange(40.0), np.cumsum(generator.normal(size=40))) for _ in range(8)]
    data = load_forecast_windows(write(tmp_path / "random.csv", series), history=6, horizon=2, hold_out="series")
    (chosen,) = data.units.autoregressions
    errors = [
        np.nanmean((each.forecast(*data.validation[:5]) - data.validation.values) ** 2)
        for each in (chosen, Autoregression.persistence(1))
    ]
    assert errors[0] <= errors[1]


def test_it_is_chosen_without_the_test_split(tmp_path):
    path = write(tmp_path / "waves.csv", oscillations(1.0))
    data = load_forecast_windows(path, history=6, horizon=4, hold_out="series")
    found, _ = fit_autoregressions(data.train, data.validation, data.units, 1)
    assert found == data.units.autoregressions


def test_known_columns_and_missing_values_count(tmp_path):
    """u is a column that is known in advance."""
    generator = np.random.default_rng(2)
    rows = ["series,time,u,drive"]
    for i in range(8):
        drive = generator.normal(size=30)
        rows += [f"{i},{t},{'' if t % 7 == 3 else drive[t]:},{drive[t]}" for t in range(30)]
    path = tmp_path / "driven.csv"
    path.write_text("\n".join(rows))
    data = load_forecast_windows(str(path), context=("drive",), history=3, horizon=2, hold_out="series")
    assert np.sqrt(np.nanmean((data.test.anchor[:, 0] - data.test.values) ** 2)) < 0.05


def test_the_same_with_jax(tmp_path):
    data = load_forecast_windows(write(tmp_path / "waves.csv", oscillations(1.0)), history=6, horizon=4)
    (linear,) = data.units.autoregressions
    ours = linear.forecast(*(jnp.asarray(part) for part in data.test[:5]), xp=jnp)
    np.testing.assert_allclose(ours, data.test.anchor[:, 0], atol=1e-4)


def test_exponential_decay_is_forecast_over_a_gap_that_training_did_not_have(tmp_path):
    """A value that decays is linear in the last one, and relaxations continue to later times than were seen."""
    generator = np.random.default_rng(3)
    series = []
    for _ in range(10):
        t = np.concatenate([np.cumsum(generator.uniform(0.5, 1.5, 14)), [30.0]])
        series.append((t, generator.uniform(5, 20) * np.exp(-0.15 * t)))
    data = load_forecast_windows(write(tmp_path / "decay.csv", series), history=6, horizon=3, folds=5)
    last = data.test.take(np.flatnonzero(data.test.origin == 13))
    assert (last.times[:, 0] * data.units.time_unit > 3 * data.units.last_time).all()
    truth, found, before = (
        data.units.restore(part)
        for part in (last.values[:, 0], last.anchor.mean(axis=1)[:, 0], last.past_values[:, -1])
    )
    assert np.abs(found - truth).max() < 0.2 * np.abs(before - truth).max()


def test_known_columns_that_say_nothing_are_left_out(tmp_path):
    generator = np.random.default_rng(4)
    rows = ["series,time,u,weight"]
    for i in range(8):
        u, weight = np.sin(0.4 * np.arange(25) + i), generator.normal()
        rows += [f"{i},{t},{u[t]:.5f},{weight}" for t in range(25)]
    path = tmp_path / "weights.csv"
    path.write_text("\n".join(rows))
    data = load_forecast_windows(str(path), context=("weight",), history=5, horizon=2, hold_out="series", folds=4)
    assert {linear.weights[0][-1] for linear in data.units.autoregressions} == {0.0}


def test_known_columns_that_do_not_change_within_a_series_are_left_to_the_model(tmp_path):
    """The level of a series is in its past; only what changes can say more about later times."""
    generator = np.random.default_rng(5)
    rows = ["series,time,u,level,drive"]
    for i in range(8):
        level, drive = generator.normal(), generator.normal(size=25)
        rows += [f"{i},{t},{level + drive[t]},{level},{drive[t]}" for t in range(25)]
    path = tmp_path / "levels.csv"
    path.write_text("\n".join(rows))
    names = {"context": ("level", "drive"), "history": 5, "horizon": 2}
    data = load_forecast_windows(str(path), **names, hold_out="series", folds=4)
    assert all(linear.weights[0][-2] == 0 != linear.weights[0][-1] for linear in data.units.autoregressions)


def test_an_average_of_linear_forecasts_is_one():
    """Of other orders and time constants, two values and a known column."""
    generator = np.random.default_rng(6)
    past = np.cumsum(generator.uniform(0.1, 1, (7, 4)), axis=1), generator.normal(size=(7, 4, 3)), np.full(7, 4)
    asked = np.cumsum(generator.uniform(0.1, 1, (7, 3)), axis=1), generator.normal(size=(7, 3, 1))
    each = []
    for order, constants, frequencies in (
        (1, (0.5, 1.0, 2.0), ()),
        (4, (0.5, 2.0), ()),
        (3, (), (1.0, 2.0, 3.0)),
        (2, (), (1.0, 2.0)),
    ):
        columns = (1 + len(constants) + 2 * len(frequencies)) * (1 + 2 * order + order + 2 * 3) + 1
        weights = tuple(map(tuple, generator.normal(size=(2, columns)).tolist()))
        each.append(Autoregression(order, constants, (0.3, 3.0), weights, frequencies, 2.0))
    whole = _average(each, values=2, known=1)
    assert (whole.order, whole.time_constants, whole.frequencies) == (4, (0.5, 1.0, 2.0), (1.0, 2.0, 3.0))
    np.testing.assert_allclose(
        whole.forecast(*past, *asked), np.mean([one.forecast(*past, *asked) for one in each], axis=0), atol=1e-12
    )
