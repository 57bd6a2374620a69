"""`charax train series`: whole series from files to classes, numbers, probabilities over time and figures."""

import contextlib
import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

import charax
from charax.cli import main
from charax.models import drop_values
from charax.solve import Solver
from charax.tasks.series import SeriesConfig, SeriesSpec, SeriesTask, _plots
from charax.train import LoopConfig, OptimizerConfig, SolverConfig, from_json, to_json, train
from tests.tasks.fields import Case, changed_parts, fields_of, shared_cases
from tests.train.commands import assert_explained

SMALL = "--width 8 --state-dim 4 --epochs 12 --batch-size 16 --learning-rate 0.02"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def turning(count: int = 60, length: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Circles that turn left or right, at irregular times, partly observed and of different lengths."""
    generator = np.random.default_rng(0)
    t = np.sort(generator.uniform(0, 6, (count, length)), axis=1)
    side, phase = np.arange(count) % 2 * 2 - 1, generator.uniform(0, 6, (count, 1))
    angle = phase + side[:, None] * t
    x = np.stack([np.cos(angle), np.sin(angle)], axis=2) + 0.05 * generator.normal(size=(count, length, 2))
    x[generator.uniform(size=x.shape) < 0.1] = np.nan
    return t, x, generator.integers(length // 2, length + 1, count), side


def long_table(t: np.ndarray, x: np.ndarray, lengths: np.ndarray, labels: list[str]) -> str:
    cell = lambda value: "" if np.isnan(value) else f"{value:.4f}"
    rows = [
        f"s{i},{t[i, j]:.4f},{cell(x[i, j, 0])},{cell(x[i, j, 1])},{labels[i]}"
        for i in range(len(t))
        for j in range(lengths[i])
    ]
    return "\n".join(["series,time,east,north,way", *rows])


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    t, x, lengths, side = turning()
    path = tmp_path_factory.mktemp("data") / "turns.csv"
    path.write_text(long_table(t, x, lengths, ["left" if each > 0 else "right" for each in side]))
    return path


@pytest.fixture(scope="module")
def turns(table, tmp_path_factory) -> Path:
    """The folder of a finished run."""
    output = tmp_path_factory.mktemp("runs")
    arguments = ["train", "series", "--data", str(table), "--target", "way", *SMALL.split()]
    assert main([*arguments, "--output", str(output), "--name", "run"]) == 0
    return output / "run"


def test_a_cde_tells_left_turns_from_right_ones(turns):
    """Which no summary of single channels can."""
    answer = charax.load_run(turns).summary()
    assert list(answer) == ["run", "accuracy", "validation_accuracy", "nfe", "parameters", "seconds"]
    assert_explained("series", answer)
    assert answer["accuracy"] >= 0.8
    assert answer["nfe"] == 2 * 11  # a midpoint step between two observations of the longest series
    assert {path.name for path in (turns / "plots").iterdir()} == {"training.png", "series.png"}


def test_evaluate_agrees_with_training_and_an_interrupted_run_ends_the_same(turns, tmp_path, ask):
    answer = ask("evaluate", turns)
    last = json.loads((turns / "metrics.jsonl").read_text().splitlines()[-1])
    assert answer["accuracy"] == pytest.approx(last["test_accuracy"])
    assert answer["failed"] == 0
    folder = tmp_path / "run"
    shutil.copytree(turns, folder)
    (folder / "model.safetensors").unlink()
    (folder / "model.json").unlink()
    lines = (folder / "metrics.jsonl").read_text().splitlines()[:-1]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    steps = [path for path in (folder / "checkpoints").iterdir() if path.name.isdigit()]
    shutil.rmtree(max(steps, key=lambda path: int(path.name)))
    assert ask("resume", folder)["accuracy"] == last["test_accuracy"]


def test_a_model_is_evaluated_on_other_series_whose_classes_are_known(turns, table, tmp_path, ask, refuse):
    everything = ask("evaluate", turns, "--data", table)
    assert everything["accuracy"] > 0.8
    assert everything["data"] == str(table)
    predictions = charax.predict(turns, table)
    named = {row[0]: row[1] for row in predictions.rows}
    truth = {row["series"]: row["way"] for row in rows_of(table)}
    right = np.mean([named[name] == way for name, way in truth.items()])
    assert everything["accuracy"] == pytest.approx(right)
    (tmp_path / "bad.csv").write_text("series,time,east,north,way\na,0,1,2,left\nb,0,1,2,up\n")
    reason = refuse("evaluate", turns, "--data", tmp_path / "bad.csv")
    assert "row 3: series 'b' has the class 'up', which no training series has" in reason


def test_predictions_of_new_series_which_may_be_longer_or_a_single_observation(turns, table, tmp_path, ask):
    t, x, _, _ = turning(count=2, length=20)
    text = long_table(t, x, np.array([20, 1]), ["?", "?"])
    (tmp_path / "new.csv").write_text(text.replace(",way", ",note"))
    answer = ask("predict", turns, tmp_path / "new.csv", "--output", tmp_path / "out.csv")
    assert (answer["predictions"], answer["failed"]) == (2, 0)
    first, second = rows_of(tmp_path / "out.csv")
    assert list(first) == ["series", "class", "probability", "probability of left", "probability of right"]
    assert first["series"] == "s0"
    assert first["class"] == "right"
    assert float(second["probability"]) < float(first["probability"])


def test_outputs_over_time_are_those_of_the_series_so_far(turns):
    run = charax.load_run(turns)
    task, model = run.trained
    split = run.splits.test
    counts, over_time = task.outputs_over_time(model, split, 1)
    assert counts.tolist() == list(range(1, int(split.lengths[1]) + 1))
    np.testing.assert_allclose(over_time[-1], task.outputs(model, split)[1], atol=1e-5)
    # What comes later is not known: another future, the same present.
    other = split._replace(values=split.values.copy())
    other.values[1, 4:, 1] *= -1  # it turns the other way
    _, changed = task.outputs_over_time(model, other, 1)
    np.testing.assert_allclose(changed[:4], over_time[:4], atol=1e-6)
    assert np.abs(changed[-1] - over_time[-1]).max() > 1e-3
    # Of a long series some of them are asked for, the last one among them.
    some, few = task.outputs_over_time(model, split, 1, most=4)
    assert (len(some), some[0], some[-1]) == (4, 1, split.lengths[1])
    np.testing.assert_allclose(few, over_time[some - 1], atol=1e-5)


def test_a_series_whose_solve_fails_is_marked_and_the_others_are_answered(turns, tmp_path):
    (tmp_path / "new.csv").write_text("series,time,east,north\na,0,1,2\na,1,2,1\nb,0,1,3e38\nb,1,2,-3e38\n")
    predictions = charax.predict(turns, tmp_path / "new.csv")
    assert [row[-1] == "ok" for row in predictions.rows] == [True, False]
    with pytest.raises(RuntimeError, match="series 'b': the solve failed"):
        charax.predict(turns, tmp_path / "new.csv", strict=True)


def test_numbers_are_predicted_in_their_units(tmp_path):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(80, 5, 1)).cumsum(axis=1)
    np.savez(tmp_path / "a.npz", x=x, y=1000 + 50 * (x[:, -1, 0] - x[:, 0, 0]))
    config = SeriesConfig(
        data=str(tmp_path / "a.npz"),
        regression=True,
        width=8,
        state_dim=4,
        drop_augmentation=0.0,
        optimizer=OptimizerConfig(learning_rate=2e-2, weight_decay=0),
        loop=LoopConfig(epochs=10, batch_size=16),
    )
    run = train(config, tmp_path / "run")
    answer = run.summary()
    assert list(answer)[:3] == ["run", "rmse", "validation_rmse"]
    assert answer["rmse"] < 25  # their standard deviation is 100
    task, model = run.trained
    split, scale = run.splits.test, task.spec.target_standardizer
    error = task.outputs(model, split)[:, 0] - scale.inverse(split.targets[:, None])[:, 0]
    assert np.sqrt(np.mean(error**2)) == pytest.approx(answer["rmse"], rel=1e-4)
    np.savez(tmp_path / "new.npz", x=x[:2])
    everything = run.config.load_labelled(tmp_path / "a.npz", task.spec)
    np.testing.assert_allclose(np.std(everything.targets), 1, atol=0.3)  # in units of the training series
    predictions = charax.predict(run.folder, tmp_path / "new.npz")
    assert predictions.columns == ["series", "label"]
    assert all(600 < float(row[1]) < 1400 for row in predictions.rows)
    assert (run.plot()[1]).name == "series.png"


def test_augmentation_drops_a_random_fraction_of_each_series():
    dropped = np.isnan(jax.jit(lambda key: drop_values(jax.numpy.ones((200, 20, 5)), 0.6, key))(jax.random.key(0)))
    shares = dropped.mean(axis=(1, 2))
    assert 0.25 < shares.mean() < 0.35
    assert shares.max() < 0.75
    assert shares.std() > 0.1


def test_the_description_of_the_data_survives_json(turns):
    spec = charax.load_model(turns).task.spec
    assert (spec.classes, spec.scaling.channels) == (("left", "right"), ("east", "north"))
    assert from_json(SeriesSpec, json.loads(json.dumps(to_json(spec)))) == spec


@pytest.fixture(scope="module")
def cases(table, tmp_path_factory) -> dict[str, Case]:
    folder = tmp_path_factory.mktemp("data")
    text = table.read_text()
    t, x, lengths, side = turning()
    (folder / "other.csv").write_text(
        long_table(t, 2 * x**3, lengths, ["left" if each > 0 else "right" for each in side])
    )
    lines = text.splitlines()
    # Two columns that could name the series, and two of times.
    roles = [f"{line[1:]},{line.split(',')[0][1:]}0,{i * i}" for i, line in enumerate(lines[1:])]
    (folder / "roles.csv").write_text("\n".join([f"{lines[0]},name,clock", *roles]))
    (folder / "numbers.csv").write_text(text.replace("left", "0").replace("right", "1"))
    base = SeriesConfig(data=str(table), target="way", width=4, loop=LoopConfig(epochs=2, batch_size=16))
    other, numbers = replace(base, data=str(folder / "roles.csv")), replace(base, data=str(folder / "numbers.csv"))
    hybrid, windows = replace(base, method="hybrid"), replace(base, windows=5)
    return {
        **shared_cases(base),
        "solver.solver": Case(base, {"solver": SolverConfig(solver="euler", steps=3)}, "solver"),
        "data": Case(base, {"data": str(folder / "other.csv")}, "data"),
        "test": Case(base, {"test": str(folder / "other.csv")}, "data"),
        "target": Case(base, {"target": "side"}, "refused"),
        "regression": Case(numbers, {"regression": True}, "spec"),
        "series": Case(other, {"series": "name"}, "spec"),
        "time": Case(other, {"time": "clock"}, "data"),
        "separator": Case(base, {"separator": ";"}, "refused"),
        "validation_fraction": Case(base, {"validation_fraction": 0.3}, "data"),
        "dropped_percent": Case(base, {"dropped_percent": 30.0}, "data"),
        "method": Case(base, {"method": "gru"}, "model"),
        "width": Case(base, {"width": 5}, "model"),
        "state_dim": Case(base, {"state_dim": 5}, "model"),
        "characteristic_dim": Case(hybrid, {"characteristic_dim": 3}, "model"),
        "interpolation": Case(base, {"interpolation": "linear"}, "model"),
        "no_counts": Case(base, {"no_counts": True}, "model"),
        "windows": Case(base, {"windows": 5}, "model"),
        "depth": Case(windows, {"depth": 1}, "model"),
        "drop_augmentation": Case(base, {"drop_augmentation": 0.2}, "task"),
        "noise_augmentation": Case(base, {"noise_augmentation": 0.2}, "task"),
        "state_only": Case(base, {"state_only": True}, "model"),
        "readout": Case(base, {"readout": "last"}, "model"),
        "summary_start": Case(base, {"summary_start": True}, "model"),
    }


@pytest.mark.parametrize("field", fields_of(SeriesConfig))
def test_every_field_changes_what_it_is_for(cases, field):
    assert cases[field].part in changed_parts(cases[field])


def test_each_method_has_its_solver(table):
    config = SeriesConfig(data=str(table), target="way")
    spec = config.load_data().spec
    solver = lambda **changes: replace(config, **changes).build_task(spec).solver
    assert solver() == Solver("midpoint", steps=1, adjoint="direct")
    assert solver(solver=SolverConfig(adjoint="checkpoint")) == Solver("midpoint", steps=1)
    # A gradient does not keep what it needs of every step of long series, unless windows make few steps of them.
    long = replace(spec, scaling=replace(spec.scaling, length=200.0))
    assert config.build_task(long).solver == Solver("midpoint", steps=1)
    assert replace(config, windows=20).build_task(long).solver.adjoint == "direct"
    assert solver(method="node") == Solver("midpoint", steps=8)
    assert solver(solver=SolverConfig(solver="bosh3", rtol=1e-3)).steps is None
    assert isinstance(config.build_task(spec), SeriesTask)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--target side", "has no column 'side'"),
        ("--target way --steps 2 --solver heun", "choose --solver euler, midpoint or bosh3"),
        ("--target way --interpolation linear --solver bosh3 --rtol 0.1", "may leap over the kinks"),
        ("--target way --method gru --steps 2", "a gru integrates nothing"),
        ("--target way --regression", "is 'right', not a finite number"),
        ("--target way --dropped-percent 100", "something must be left"),
        ("--target way --validation-fraction 0.9", "must be above 0 and below 0.8"),
        ("--target way --windows 0", "windows must be a number of at least 1"),
    ],
)
def test_a_bad_setting_is_a_sentence_and_leaves_nothing(table, flags, words, refuse, tmp_path):
    reason = refuse("train", "series", "--data", table, *flags.split(), "--output", tmp_path / "runs")
    assert words in reason
    assert not list(tmp_path.iterdir())


def test_the_report_shows_series_confusions_and_trajectories(turns):
    run = charax.load_run(turns)
    sections = {each.title: each for each in run.trained.task.report(run.trained.model, run.splits, data="turns")}
    assert list(sections) == ["Series", "Confusion matrix", "Trajectories u(s)"]
    counts = np.asarray(sections["Confusion matrix"].figure.data[0].text, int)
    assert counts.sum() == len(run.splits.test.lengths)
    assert np.trace(counts) / counts.sum() == pytest.approx(run.summary()["accuracy"])
    behind = sections["Confusion matrix"].details.rows
    assert {key: len(rows) for key, rows in behind.items()} == {
        f"{true}/{said}": counts[true, said] for true, said in zip(*np.nonzero(counts), strict=True)
    }
    # What the model says after the last observation is what it says about the series.
    said = [trace.y[-1] for trace in sections["Series"].figure.data if trace.legendgroup == "classes"]
    assert said == pytest.approx(run.trained.task.outputs(run.trained.model, run.splits.test)[0], abs=1e-5)
    assert len(sections["Series"].figure.frames) == min(12, len(run.splits.test.lengths))


def test_the_columns_of_predictions_are_explained(turns, table, tmp_path, capsys):
    assert main(["predict", str(turns), str(table), "--output", str(tmp_path / "out.csv")]) == 0
    explained = capsys.readouterr().out.split("Columns:\n")[1].splitlines()
    assert [line.split(":")[0].strip() for line in explained] == ["series", "class", "probability of …"]


def test_the_figure_says_what_bold_means_and_its_legend_has_no_bold_class(turns, monkeypatch, tmp_path):
    figure, run = Figure(), charax.load_run(turns)
    monkeypatch.setattr(_plots, "save_figure", lambda *_, **__: contextlib.nullcontext(figure))
    _plots.plot_series(run.trained.task, run.trained.model, run.splits.test, tmp_path / "series.png")
    outputs = figure.axes[-1]
    assert figure.axes[2].get_ylabel() == "probability (bold: true class)"
    assert len({line.get_linewidth() for line in outputs.lines}) == 2
    assert len({line.get_linewidth() for line in outputs.get_legend().get_lines()}) == 1


def test_series_of_dates_are_trained_on_and_a_model_of_numbers_refuses_them(table, turns, tmp_path, refuse):
    header, *rows = table.read_text().splitlines()
    day = lambda time: f"{np.datetime64('2020-01-01T00:00:00') + np.timedelta64(round(float(time) * 86_400), 's')}"
    cells = [row.split(",", 2) for row in rows]
    dated = "\n".join([header, *(f"{name},{day(time)},{rest}" for name, time, rest in cells)])
    (tmp_path / "days.csv").write_text(dated)
    data = SeriesConfig(data=str(tmp_path / "days.csv"), target="way").load_data()
    assert data.spec.time_kind == "date"
    numbers = SeriesConfig(data=str(table), target="way").load_data()
    np.testing.assert_allclose(data.splits.train.times, numbers.splits.train.times, atol=1e-4)
    assert "has dates as times" in refuse("predict", turns, tmp_path / "days.csv", "--output", tmp_path / "out.csv")
    assert "has dates as times" in refuse("evaluate", turns, "--data", tmp_path / "days.csv")
