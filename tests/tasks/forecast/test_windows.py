"""`charax train forecast --history`: a state inferred from past observations, and calibrated prediction intervals."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import charax
from charax.cli import main
from charax.models import WindowDesign, combine_forecasts, forecast_losses
from charax.solve import Solver
from charax.tasks.forecast import ForecastConfig, WindowSpec
from charax.train import LoopConfig, from_json, to_json
from tests.tasks.fields import Case, changed_parts
from tests.train.commands import assert_explained

SMALL = "--history 5 --horizon 3 --width 8 --state-dim 6 --characteristic-dim 2 --batch-size 32 --learning-rate 0.01"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """Oscillations with a drive that is known in advance, at irregular times, with missing values and noise."""
    generator = np.random.default_rng(0)
    rows = []
    for name in range(12):
        t = np.cumsum(generator.uniform(0.2, 0.6, 30))
        drive = generator.integers(0, 2, 30)
        u = np.sin(t + name) + drive + 0.05 * generator.normal(size=30)
        v = np.cos(t + name)
        rows += [f"{name},{t[i]:.3f},{'' if i % 9 == 4 else f'{u[i]:.4f}'},{v[i]:.4f},{drive[i]}" for i in range(30)]
    path = tmp_path_factory.mktemp("data") / "driven.csv"
    path.write_text("\n".join(["series,time,u,v,drive", *rows]))
    return path


@pytest.fixture(scope="module")
def run(table, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("runs")
    flags = ["--data", str(table), "--context", "drive", *SMALL.split(), "--epochs", "4"]
    assert main(["train", "forecast", *flags, "--output", str(output), "--name", "run"]) == 0
    return output / "run"


def test_several_values_are_forecast_better_than_by_persistence(run):
    loaded = charax.load_run(run)
    answer = loaded.summary()
    assert_explained("forecast", answer)
    assert list(answer) == [
        *("run", "scaled_rmse", "validation_scaled_rmse", "covered", "nfe", "parameters", "seconds")
    ]
    last = loaded.splits.test.past_values[:, :, :2]
    lengths = loaded.splits.test.past_lengths
    rows = np.arange(len(lengths))
    persistence = np.nan_to_num(last[rows, lengths - 1])[:, None]
    error = np.nanmean((loaded.splits.test.values - persistence) ** 2) ** 0.5
    assert answer["scaled_rmse"] < 0.8 * error
    assert 0.8 < answer["covered"] <= 1
    assert answer["nfe"] == 2 * 4 + 3 * 2 * 2  # midpoint steps along the past, and two to each forecast
    assert {path.name for path in (run / "plots").iterdir()} == {"training.png", "forecast.png"}


def test_intervals_cover_95_percent_of_the_validation_values(run):
    """Which they are calibrated on, value by value."""
    loaded = charax.load_run(run)
    task, model = loaded.trained
    windows = loaded.splits.validation
    mean, lower, upper = task.forecast(model, windows)
    truth = task.spec.units.restore(windows.values)
    assert model.calibration.tolist() != [1.0, 1.0]
    for j in range(2):
        known = ~np.isnan(truth[..., j])
        half = (upper - lower) / 2
        count = lambda factor, j=j, known=known, half=half: (np.abs(truth - mean) <= factor * half)[..., j][known].sum()
        assert count(1.001) / known.sum() >= 0.95
        assert count(0.999) < count(1.001)  # and not more than needed


@pytest.mark.parametrize("kept", [0.0, 0.25, 1.0])
def test_validation_says_how_much_of_the_correction_is_kept(kept, run):
    """Where the truth lies a part of the way from the linear forecast to the model's, that part is what is forecast."""
    loaded = charax.load_run(run)
    task, model = loaded.trained
    windows = loaded.splits.validation
    standardize = task.spec.units.value_standardizer
    scaled = lambda model: (task.forecast(model, windows)[0] - standardize.mean) / standardize.std
    linear = scaled(model.scale_correction(0.0))
    own = np.take_along_axis(windows.anchor, np.maximum(windows.fold, 0)[:, None, :, None], axis=1)[:, 0]
    np.testing.assert_allclose(linear, own, atol=1e-4)  # of the member that has not learned a value
    truth = linear + kept * (scaled(model) - linear)
    assert np.abs(scaled(model) - linear).max() > 0.05
    seen = loaded.splits._replace(validation=windows._replace(values=truth.astype(np.float32)))
    said: list[str] = []
    refined, _ = task.refine(model, seen, said.append)
    np.testing.assert_allclose(scaled(refined), truth, atol=1e-4)
    assert any(f"kept to {kept:.0%}" in line for line in said) == (kept < 1)


def test_evaluate_has_errors_and_coverage_by_horizon(run, ask):
    answer, trained = ask("evaluate", run), charax.load_run(run).summary()
    for error in (answer["squared_error"] ** 0.5, answer["scaled_rmse"]):
        assert error == pytest.approx(trained["scaled_rmse"], rel=1e-5)
    assert [(row["value"], row["ahead"]) for row in answer["horizons"]] == [(v, h) for v in "uv" for h in (1, 2, 3)]
    assert all(0 <= row["covered"] <= 1 and row["rmse"] > 0 for row in answer["horizons"])


def test_a_table_without_confidence_intervals_does_not_explain_them(run, capsys):
    assert main(["evaluate", str(run)]) == 0
    assert "confidence" not in capsys.readouterr().out


def test_predictions_at_any_times_and_the_known_column_matters(run, tmp_path, ask):
    past = [f"x,{t},{np.sin(t):.3f},{np.cos(t):.3f},0" for t in (0.0, 0.4, 1.0)]
    for name, drive in (("low", 0), ("high", 1)):
        future = [f"x,{t},,,{drive}" for t in (1.2, 1.25, 3.0)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["series,time,u,v,drive", *past, *future]))
        answer = ask("predict", run, tmp_path / f"{name}.csv", "--output", tmp_path / f"{name}-out.csv")
        assert (answer["predictions"], answer["failed"]) == (3, 0)
    low, high = (rows_of(tmp_path / f"{name}-out.csv") for name in ("low", "high"))
    assert list(low[0]) == ["series", "time", "u", "lower u", "upper u", "v", "lower v", "upper v"]
    assert [float(row["time"]) for row in low] == [1.2, 1.25, 3.0]
    assert all(float(row["lower u"]) < float(row["u"]) < float(row["upper u"]) for row in low + high)
    assert float(high[-1]["u"]) > float(low[-1]["u"]) + 0.1


def test_a_forecast_does_not_depend_on_the_other_times_asked_for(run):
    """Gaps longer than those in training get more steps."""
    loaded = charax.load_run(run)
    task, model = loaded.trained
    one = loaded.splits.test.take(np.array([0]))
    alone = one._replace(times=np.full((1, 1), 2.0, np.float32), known=np.zeros((1, 1, 1), np.float32))
    clock = np.linspace(0.1, 2.0, 20, dtype=np.float32)[None]
    among = one._replace(times=clock, known=np.zeros((1, 20, 1), np.float32))
    np.testing.assert_allclose(task.forecast(model, alone)[0][0, 0], task.forecast(model, among)[0][0, -1], atol=0.03)


def test_far_forecasts_warn_and_their_intervals_widen(run, tmp_path, capsys):
    rows = ["x,0,0.1,1,0", "x,0.4,0.3,0.9,0", "x,0.8,,,0", "x,40,,,0"]
    (tmp_path / "far.csv").write_text("\n".join(["series,time,u,v,drive", *rows]))
    assert main(["predict", str(run), str(tmp_path / "far.csv"), "--output", str(tmp_path / "out.csv")]) == 0
    assert "1 of 2 forecasts are for more than 1.5 times the longest time" in capsys.readouterr().err


@pytest.mark.parametrize("backend", [np, jnp])
def test_intervals_widen_only_after_the_longest_time_and_from_the_errors_of_the_linear_forecast(run, backend):
    """A model may be sure of anything at times that it has not seen."""
    units = charax.load_run(run).trained[0].spec.units
    assert all(0.01 < each < 2 for each in units.linear_std)
    last = units.last_time / units.time_unit
    std = backend.asarray(np.tile([[[1e-6, 10.0]]], (1, 3, 1)))
    found = np.asarray(units.widen(backend.asarray([[0.5 * last, 0.99 * last, 4 * last]]), std, backend))
    np.testing.assert_allclose(found[0, :2], std[0, :2], rtol=1e-5)
    np.testing.assert_allclose(found[0, 2], [4 * units.linear_std[0], 40], rtol=1e-5)


def test_an_interrupted_run_ends_the_same(run, tmp_path, ask):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    (folder / "model.safetensors").unlink()
    (folder / "model.json").unlink()
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    (folder / "metrics.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    steps = [path for path in (folder / "checkpoints").iterdir() if path.name.isdigit()]
    shutil.rmtree(max(steps, key=lambda path: int(path.name)))
    answer = ask("resume", folder)
    assert answer["covered"] == json.loads(lines[-1])["test_covered"]


def test_no_member_learns_its_own_fold(table):
    config = ForecastConfig(data=str(table), history=5, horizon=3, width=4, folds=3, drop_augmentation=0.0)
    data = config.load_data()
    task = config.build_task(data.spec)
    model = task.build(jax.random.key(0))
    assert model.size == 3
    batch = jax.tree.map(jnp.asarray, data.splits.train.take(np.flatnonzero(data.splits.train.fold[:, 0] == 1)[:8]))
    gradient = eqx.filter_grad(lambda model: task.loss(model, batch, jax.random.key(1))[0])(model)
    size = jnp.abs(gradient.members.head.weight).sum(axis=(1, 2))
    assert size[1] == 0 < min(size[0], size[2])
    out = model(*batch[:6], solver=task.solver)
    np.testing.assert_array_equal(combine_forecasts(out, batch.fold)[0], out.mean[1])
    mean, std = combine_forecasts(out, jnp.full_like(batch.fold, -1))
    np.testing.assert_allclose(mean, out.mean.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(std**2, (out.std**2).mean(axis=0) + out.mean.var(axis=0), rtol=1e-4)


def test_few_series_still_give_intervals_that_cover_other_series(tmp_path):
    """Twelve walks, none of which can be forecast: out-of-fold errors say so."""
    generator = np.random.default_rng(0)
    lines = ["series,time,u"]
    for i in range(12):
        walk = np.exp(0.2 * generator.normal(size=40).cumsum())
        lines += [f"{i},{t},{walk[t]:.5f}" for t in range(40)]
    (tmp_path / "walks.csv").write_text("\n".join(lines))
    path = str(tmp_path / "walks.csv")
    config = ForecastConfig(data=path, history=4, horizon=3, hold_out="series", transform="log", width=4, state_dim=3)
    data = config.load_data()
    task = config.build_task(data.spec)
    model, _ = task.refine(task.build(jax.random.key(0)), data.splits, lambda line: None)
    _, lower, upper = task.forecast(model, data.splits.test)
    truth = task.spec.units.restore(data.splits.test.values)
    known = ~np.isnan(truth)
    assert (lower >= 0).all()
    assert 0.88 < ((lower <= truth) & (truth <= upper))[known].mean() <= 1
    middle = task.forecast(model, data.splits.test)[0]
    assert ((upper - middle) > (middle - lower)).all()  # asymmetric, as the values are


def test_the_loss_is_the_squared_error_and_the_likelihood_of_what_was_observed():
    model = WindowDesign(width=4, state_dim=3).build(1, 0, key=jax.random.key(0))
    past = jnp.array([[0.0, 0.5]]), jnp.array([[[1.0], [2.0]]]), jnp.array([2])
    out = model(*past, jnp.array([[0.1, 0.2, 0.2]]), jnp.zeros((1, 3, 0)))
    values = jnp.array([[[0.3], [jnp.nan], [0.7]]])
    error, std = (values - out.mean)[0, ::2, 0], out.std[0, ::2, 0]
    expected = jnp.mean(0.5 * error**2 + 0.5 * (error / std) ** 2 + jnp.log(std))
    assert forecast_losses(out, values)[0] == pytest.approx(float(expected), rel=1e-5)
    np.testing.assert_allclose(out.mean[0, 1], out.mean[0, 2], rtol=1e-6)  # the same time


def test_a_start_at_the_last_value_joins_the_linear_forecast_only_when_it_is_scaled():
    model = WindowDesign(width=4, state_dim=3, start="last").build(1, 0, key=jax.random.key(0))
    past = jnp.array([[0.0, 0.5]]), jnp.array([[[1.0], [2.0]]]), jnp.array([2])
    ahead, linear = (jnp.array([[0.1, 0.6]]), jnp.zeros((1, 2, 0))), jnp.array([[[5.0], [7.0]]])
    mean = model(*past, *ahead, linear).mean
    np.testing.assert_array_equal(mean, model(*past, *ahead).mean)  # which corrects the last value
    scaled = model.scale_correction(0.5)
    np.testing.assert_allclose(scaled(*past, *ahead, linear).mean, (linear + mean) / 2, rtol=1e-6)
    twice = scaled.scale_correction(0.5)(*past, *ahead, linear).mean
    np.testing.assert_allclose(twice, 0.75 * linear + 0.25 * mean, rtol=1e-6)
    np.testing.assert_allclose(model.scale_correction(0.0)(*past, *ahead, linear).mean, linear, rtol=1e-6)


def test_noise_of_observations_that_follow_closely_is_not_magnified():
    """A cubic path continues with the slope between the two, which is a thousand here."""
    times, lengths = jnp.array([[0.0, 0.5, 0.5001, 1.0]]), jnp.array([4])
    forecast = lambda design, noise: (
        design.build(1, 0, key=jax.random.key(0))(
            times, jnp.array([[[0.0], [0.0], [noise], [0.0]]]), lengths, jnp.array([[0.5]]), jnp.zeros((1, 1, 0))
        ).mean
    )
    moved = [
        float(jnp.abs(forecast(design, 0.1) - forecast(design, 0.0))[0, 0, 0])
        for design in (WindowDesign(width=8), WindowDesign(width=8, interpolation="hermite"))
    ]
    assert moved[0] < 0.05
    assert moved[1] > 10 * moved[0]


def test_many_windows_start_at_the_last_value_and_runs_of_earlier_versions_at_the_linear_forecast(table):
    many, few = (ForecastConfig(data=name, history=5, horizon=3).load_data().spec for name in ("pendulum", str(table)))
    assert (many.start, few.start) == ("last", "linear")
    stored = to_json(few)
    del stored["interpolation"]
    assert from_json(WindowSpec, stored).interpolation == "hermite"
    assert from_json(WindowSpec, stored).start == "linear"


def test_an_inferred_distribution_has_a_divergence_and_widens_the_forecast():
    model = WindowDesign(width=4, state_dim=3, latent=True).build(1, 0, key=jax.random.key(0))
    past = jnp.array([[0.0, 0.5]]), jnp.array([[[1.0], [2.0]]]), jnp.array([2])
    ahead = jnp.array([[0.1]]), jnp.zeros((1, 1, 0))
    drawn = [model(*past, *ahead, key=jax.random.key(i)) for i in range(2)]
    averaged = model(*past, *ahead)
    assert drawn[0].mean != drawn[1].mean
    assert drawn[0].divergence[0] > 0
    assert averaged.std > min(drawn[0].std, drawn[1].std)
    assert forecast_losses(averaged, averaged.mean)[0] > jnp.log(averaged.std[0, 0, 0]) + 0.1


def test_expected_values_do_not_depend_on_how_wide_intervals_are(tmp_path):
    """Of logarithms the expected value is above the median by the variance, which is not that of wide intervals."""
    path = tmp_path / "positive.csv"
    lines = [f"{i},{t},{np.exp(np.sin(t + i)):.4f}" for i in range(6) for t in range(12)]
    path.write_text("\n".join(["series,time,u", *lines]))
    config = ForecastConfig(data=str(path), history=4, horizon=3, hold_out="series", transform="log", width=4)
    loaded = config.load_data()
    task = config.build_task(loaded.spec)
    model = task.build(jax.random.key(0))
    wide = model.calibrate(jnp.full(1, 3.0), jnp.full(1, 1 / 3))  # and errors are as large as before
    found = [task.forecast(each, loaded.splits.test) for each in (model, wide)]
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=0.02)  # but for how members differ
    median = task.spec.units.restore(task._scaled(model, loaded.splits.test)[0])
    assert (found[0][0] > 1.01 * median).mean() > 0.9
    assert (found[1][2] > found[0][2]).all()


def test_intervals_for_new_series_are_those_of_students_t(run):
    """The same model, calibrated for later times of the series and for series that are not in the training data."""
    loaded = charax.load_run(run)
    task, model = loaded.trained
    found = {}
    for for_new_series in (False, True):
        spec = replace(task.spec, for_new_series=for_new_series)
        refined, _ = replace(task, spec=spec).refine(model, loaded.splits, lambda text: None)
        found[for_new_series] = np.asarray(refined.calibration)
        windows = loaded.splits.validation
        mean, std = task._scaled(refined, windows)
        scores = (windows.values - mean) / (std * np.asarray(refined.error_ratio))
        np.testing.assert_allclose(np.nanmean(scores**2, axis=(0, 1)), 1, rtol=0.05)
    np.testing.assert_allclose(found[True], found[False] * 2.201 / 1.960, rtol=1e-3)  # 12 series
    config = lambda hold_out: ForecastConfig(data="pendulum", history=5, hold_out=hold_out).load_data().spec
    assert [config(hold_out).for_new_series for hold_out in ("series", "times")] == [True, False]


WINDOW_FIELDS = {
    "context": ({"context": ("drive",)}, "spec"),
    "width": ({"width": 5}, "model"),
    "characteristic_dim": ({"characteristic_dim": 3}, "model"),
    "method": ({"method": "node-fair"}, "model"),
    "damping": ({"damping": 1.0}, "task"),
}


@pytest.mark.parametrize("name", WINDOW_FIELDS)
def test_the_fields_of_forecasts_from_a_start_matter_here_too(table, name):
    base = ForecastConfig(data=str(table), history=5, horizon=3, width=4, loop=LoopConfig(epochs=2, batch_size=16))
    change, part = WINDOW_FIELDS[name]
    assert part in changed_parts(Case(base, change, part))


def test_dropped_values_and_damping_change_the_loss_and_the_forecast(table):
    base = ForecastConfig(data=str(table), history=5, horizon=3, width=4, loop=LoopConfig(batch_size=16))
    data = base.load_data()
    batch = jax.tree.map(jnp.asarray, data.splits.train.take(np.arange(8)))
    losses, means = [], []
    for config in (base, replace(base, drop_augmentation=0.9), replace(base, damping=0.1)):
        task = config.build_task(data.spec)
        model = task.build(jax.random.key(0))
        losses.append(float(task.loss(model, batch, jax.random.key(1))[0]))
        means.append(model(*batch[:6], solver=Solver("midpoint", steps=2)).mean)
    assert losses[0] != losses[1]
    assert (means[0] == means[1]).all()
    assert not np.allclose(means[0], means[2])


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--data paper --history 5", "do not depend on earlier ones: leave out --history"),
        ("--data pendulum", "add --history 10"),
        ("--data pendulum --history 5 --method node", "choose .c-node. or .node-fair."),
        ("--data pendulum --history 0", "history must be a number of at least 1"),
        ("--data pendulum --history 5 --drop-augmentation 1", "must be below 1"),
    ],
)
def test_a_bad_setting_is_a_sentence_and_leaves_nothing(flags, words, refuse, tmp_path, monkeypatch):
    import re

    monkeypatch.chdir(tmp_path)
    assert re.search(words, refuse("train", "forecast", *flags.split()))
    assert not list(tmp_path.iterdir())


def test_the_report_shows_windows_with_what_came_before_and_after(run, table):
    loaded = charax.load_run(run)
    task, model = loaded.trained
    section, *curves = task.report(model, loaded.splits, data="driven")
    assert [each.title for each in curves] == ["Learned characteristics x(s)", "Trajectories u(s)"]
    assert (section.title, section.frame_label) == ("Forecasts", "window")
    named = [frame.name.split(", time ") for frame in section.figure.frames]
    with table.open() as file:
        times = {(row["series"], float(row["time"])) for row in csv.DictReader(file)}
    assert len(named) == 12
    assert {(name, float(time)) for name, time in named} <= times
    heads = [trace.name for trace in curves[0].figure.data if trace.name]
    assert heads == [", time ".join(each) for each in named]
    interval, line, past, later = section.figure.data[:4]
    upper, lower = np.split(np.asarray(interval.y), 2)
    assert ((lower[::-1] < line.y) & (line.y < upper)).all()
    assert np.max(past.x) == 0 < np.nanmin(later.x)
