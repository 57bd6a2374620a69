"""`charax train regress`: trained, evaluated, resumed and asked for predictions with intervals, on the command line."""

import csv
import json
import shutil
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import charax
from charax.cli import main
from charax.models import VectorArchitecture
from charax.tasks.regression import RegressionSpec
from charax.train import LoopConfig, OptimizerConfig, SolverConfig, from_json, to_json, train
from tests.train.commands import assert_explained

SMALL = "--method node --members 2 --width 4 --epochs 3 --batch-size 16"
NOISE, UNIT = (0.1, 0.5), (1000.0, 1.0)
"""Standard deviation of the noise of two synthetic targets before they are given units."""


def answer_of(capsys, *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*map(str, arguments), "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    return json.loads(line)


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def metrics_of(folder: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """Numbers, texts and missing values, and a price that depends on them."""
    path = tmp_path_factory.mktemp("data") / "houses.csv"
    generator = np.random.default_rng(0)
    lines = ["size;kind;rooms;price"]
    for i in range(60):
        size, kind = generator.uniform(20, 200), i % 3
        lines.append(f"{size:.1f};{'abc'[kind]};{i % 5 or ''};{1e5 + 3e3 * size + 2e4 * kind:.0f}")
    path.write_text("\n".join(lines))
    return path


@dataclass
class Trained:
    folder: Path
    answer: dict[str, Any]


@pytest.fixture(scope="module")
def priced(table, tmp_path_factory) -> Trained:
    """A finished run on the table."""
    output = tmp_path_factory.mktemp("runs")
    arguments = ["train", "regress", "--data", str(table), "--target", "price", *SMALL.split()]
    assert main([*arguments, "--output", str(output), "--name", "run"]) == 0
    run = charax.load_run(output / "run")
    return Trained(output / "run", run.summary())


@pytest.fixture(scope="module")
def noisy(tmp_path_factory) -> Trained:
    """A finished run on two synthetic targets with known noise, given as arrays."""
    folder = tmp_path_factory.mktemp("noisy")
    generator = np.random.default_rng(1)
    x = generator.normal(size=(1000, 2))
    mean = np.stack([0.7 * x[:, 0], 0.5 * (x[:, 0] - x[:, 1])], axis=1)
    np.savez(folder / "noisy.npz", x=x, y=(mean + generator.normal(size=(1000, 2)) * NOISE) * UNIT)
    config = charax.RegressionConfig(
        data=str(folder / "noisy.npz"),
        method="node",
        members=1,
        width=4,
        optimizer=OptimizerConfig(learning_rate=2e-2, weight_decay=0.1, schedule="constant"),
        loop=LoopConfig(epochs=12, batch_size=50),
    )
    run = train(config, folder / "run")
    return Trained(run.folder, run.summary())


def test_the_answer_has_rmse_r2_and_coverage(table, tmp_path, capsys, priced):
    flags = ["--data", table, "--target", "price", *SMALL.split(), "--output", tmp_path, "--name", "run"]
    answer = answer_of(capsys, "train", "regress", *flags)
    assert list(answer) == ["run", "rmse", "r2", "validation_rmse", "covered", "nfe", "parameters", "seconds"]
    assert_explained("regress", answer)
    assert answer["nfe"] == 4  # two midpoint steps
    same = ("rmse", "r2", "validation_rmse", "covered", "parameters")
    assert [answer[name] for name in same] == [priced.answer[name] for name in same]  # the same seed
    assert {path.name for path in (tmp_path / "run/plots").iterdir()} == {
        "training.png",
        "predictions.png",
        "residuals.png",
    }


def test_rmse_and_r2_are_those_of_the_predictions_of_the_test_split(priced):
    task, model = charax.load_model(priced.folder)
    split = charax.load_run(priced.folder).splits.test
    scale = task.spec.target_standardizer
    observed, (value, _, _) = scale.inverse(split.targets), task.standardized_values(model, split.inputs)
    error, deviation = (observed - value) ** 2, (observed - scale.mean[0]) ** 2
    assert priced.answer["rmse"] == pytest.approx(np.sqrt(error.mean()), rel=1e-4)
    assert priced.answer["r2"] == pytest.approx(1 - error.mean() / deviation.mean(), abs=1e-4)


def test_evaluate_agrees_with_training(priced, capsys):
    answer = answer_of(capsys, "evaluate", priced.folder)
    last = metrics_of(priced.folder)[-1]
    assert answer["squared_error"] == pytest.approx(last["test_squared_error"], rel=1e-5)
    assert answer["covered"] == last["test_covered"]
    assert answer["failed"] == 0


def test_an_interrupted_run_ends_as_if_it_had_not_been(priced, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(priced.folder, folder)
    for name in ("model.safetensors", "model.json"):
        (folder / name).unlink()
    epochs = (folder / "metrics.jsonl").read_text().splitlines()[:-1]
    (folder / "metrics.jsonl").write_text("\n".join(epochs) + "\n")
    newest = max(
        (path for path in (folder / "checkpoints").iterdir() if path.name.isdigit()), key=lambda p: int(p.name)
    )
    shutil.rmtree(newest)
    answer = answer_of(capsys, "resume", folder)
    assert answer["rmse"] == priced.answer["rmse"]
    assert metrics_of(folder) == metrics_of(priced.folder)


def test_predictions_have_intervals_in_the_units_of_the_target(priced, tmp_path, capsys):
    new = tmp_path / "new.csv"
    new.write_text("kind,rooms,size,street\nc,,150,x\na,2,30,y\nd,1,90,z\n")  # other order, more columns, a new kind
    answer = answer_of(capsys, "predict", priced.folder, new, "--output", tmp_path / "out.csv")
    assert (answer["predictions"], answer["failed"]) == (3, 0)
    rows = read_rows(tmp_path / "out.csv")
    assert list(rows[0]) == ["input", "price", "lower price", "upper price"]
    assert [row["input"] for row in rows] == ["2", "3", "4"]
    for row in rows:
        value, lower, upper = (float(row[name]) for name in ("price", "lower price", "upper price"))
        assert 1e5 < value < 1e6
        assert value - lower == pytest.approx(upper - value, rel=1e-3)
        assert upper - lower > 1e4


def test_several_targets_are_reported_in_their_own_units(noisy):
    answer = noisy.answer
    assert answer["rmse_y1"] == pytest.approx(NOISE[0] * UNIT[0], rel=0.3)
    assert answer["rmse_y2"] == pytest.approx(NOISE[1] * UNIT[1], rel=0.3)
    scale = charax.load_model(noisy.folder).task.spec.target_standardizer.std
    standardized = [answer["rmse_y1"] / scale[0], answer["rmse_y2"] / scale[1]]
    assert answer["rmse"] == pytest.approx(np.sqrt(np.mean(np.square(standardized))), rel=1e-4)
    # The best possible: what is left of the variance is noise.
    best = 1 - np.mean([n**2 * u**2 / s**2 for n, u, s in zip(NOISE, UNIT, scale, strict=True)])
    assert answer["r2"] == pytest.approx(best, abs=0.1)


def test_the_intervals_cover_what_they_promise(noisy, tmp_path):
    assert 0.9 <= noisy.answer["covered"] <= 0.99
    np.savez(tmp_path / "new.npz", x=np.zeros((2, 2)))
    predictions = charax.predict(noisy.folder, tmp_path / "new.npz")
    assert predictions.columns == ["input", "y1", "lower y1", "upper y1", "y2", "lower y2", "upper y2"]
    _, y1, lower1, upper1, y2, lower2, upper2 = map(float, predictions.rows[0])
    assert abs(y1) < 100
    assert abs(y2) < 0.2
    assert upper1 - lower1 == pytest.approx(2 * 1.96 * NOISE[0] * UNIT[0], rel=0.25)
    assert upper2 - lower2 == pytest.approx(2 * 1.96 * NOISE[1] * UNIT[1], rel=0.25)


def test_a_row_that_fails_is_marked_and_the_others_are_answered(noisy, tmp_path):
    task, model = charax.load_model(noisy.folder)
    # A readout that overflows where the final state is large.
    steep = eqx.tree_at(lambda model: model.network.head.weight, model, replace_fn=lambda weight: 1e37 * weight)
    np.savez(tmp_path / "new.npz", x=np.array([[0.0, 0.0], [1e4, -1e4], [1.0, 1.0]]))
    table = task.predict(steep, tmp_path / "new.npz")
    assert table.failed == 1
    good, bad, _ = table.rows
    assert good[-1] == "ok"
    assert bad[:-1] == ["1", "", "", "", "", "", ""]
    assert "check its scale" in bad[-1]
    with pytest.raises(RuntimeError, match=r"new\.npz, input 1: the solve failed"):
        task.predict(steep, tmp_path / "new.npz", strict=True)


def test_with_adaptive_steps_no_prediction_depends_on_the_other_rows(noisy):
    task, model = charax.load_model(noisy.folder)
    adaptive = type(task)(task.architecture, charax.Solver("bosh3", rtol=1e-2, atol=1e-2), task.spec)
    rows = np.array([[0.3, -0.2], [900.0, 400.0]], np.float32)
    alone, together = (adaptive.standardized_values(model, x, batch_size=2)[0][0] for x in (rows[:1], rows))
    np.testing.assert_array_equal(alone, together)


def test_predictions_far_from_zero_keep_the_digits_that_matter(noisy, tmp_path):
    task, model = charax.load_model(noisy.folder)
    scale = replace(task.spec.target_standardizer, mean=(1.7e9, 0.0), std=(10.0, 1.0))
    shifted = type(task)(task.architecture, task.solver, replace(task.spec, target_standardizer=scale))
    np.savez(tmp_path / "new.npz", x=np.array([[0.0, 0.0], [0.01, 0.0]]))
    first, second = (float(row[1]) for row in shifted.predict(model, tmp_path / "new.npz").rows)
    assert 0 < second - first < 1


def test_the_description_of_the_data_survives_json(priced):
    spec = charax.load_model(priced.folder).task.spec
    assert spec.encoder.columns == ("size", "kind", "rooms")
    assert from_json(RegressionSpec, json.loads(json.dumps(to_json(spec)))) == spec


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--target", "kind"], "looks like classes: use train classify"),
        (["--target", "rooms"], "row 2: column 'rooms' has nothing, not a finite number"),
        (["--target", "cost"], "has no column 'cost'"),
        (["--target", "price", "--steps", "2", "--rtol", "0.1"], "exclude each other"),
    ],
)
def test_bad_input_is_a_sentence_and_status_2(table, flags, words, tmp_path, capsys):
    assert main(["train", "regress", "--data", str(table), *flags, "--output", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert words in " ".join(error.split())
    assert "Traceback" not in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["members", "width", "augment_dim", "characteristic_dim"])
def test_a_size_of_zero_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be a number of at least 1, got 0"):
        charax.RegressionConfig(**{name: 0})


def test_predicting_without_a_column_names_it(priced, tmp_path):
    (tmp_path / "new.csv").write_text("size,rooms\n100,2\n")
    with pytest.raises(charax.DataError, match="no column 'kind'"):
        charax.predict(priced.folder, tmp_path / "new.csv")


# What changes when a field of the config does: a config with another value, and what to look at.
BASE = charax.RegressionConfig(method="anode+c-node", width=4)


def spec_of(config: charax.RegressionConfig) -> RegressionSpec:
    return config.load_data().spec


def parameters_of(config: charax.RegressionConfig) -> int:
    task = config.build_task(spec_of(charax.RegressionConfig()))
    assert isinstance(task.architecture, VectorArchitecture)
    return task.architecture.count((3,), 1)


def solver_of(config: charax.RegressionConfig):
    return config.build_task(spec_of(charax.RegressionConfig())).solver


EFFECTS = {
    "data": (lambda table: {"data": str(table), "target": ("size",)}, spec_of),
    "target": (lambda table: {"target": ("bmi",)}, spec_of),
    "method": (lambda table: {"method": "node"}, parameters_of),
    "members": (lambda table: {"members": 3}, lambda config: config.build_task(spec_of(charax.RegressionConfig()))),
    "width": (lambda table: {"width": 5}, parameters_of),
    "augment_dim": (lambda table: {"augment_dim": 1}, parameters_of),
    "characteristic_dim": (lambda table: {"characteristic_dim": 3}, parameters_of),
    "jacobian": (lambda table: {"jacobian": "joint"}, parameters_of),
    "solver": (lambda table: {"solver": SolverConfig("heun")}, solver_of),
}
TRAINED = {
    "optimizer": lambda config: replace(config, optimizer=replace(config.optimizer, learning_rate=0.1)),
    "loop": lambda config: replace(config, loop=replace(config.loop, epochs=1)),
}


@pytest.mark.parametrize("name", [field.name for field in fields(charax.RegressionConfig)])
def test_every_field_has_an_effect(name, table, priced, tmp_path):
    if name == "separator":
        (tmp_path / "odd.csv").write_text("a;b|c;target\n" + "\n".join(f"{i};{i * i}|1;{i}.5" for i in range(12)))
        config = charax.RegressionConfig(data=str(tmp_path / "odd.csv"))
        assert spec_of(config).encoder.columns == ("a",)  # texts like 4|1 are names
        with pytest.raises(charax.DataError, match=r"it has a;b, c;target"):
            replace(config, separator="|").load_data()
    elif name in TRAINED:
        config = charax.load_config(priced.folder)
        run = train(TRAINED[name](config), tmp_path / "run")
        assert metrics_of(run.folder) != metrics_of(priced.folder)
        assert [row["step"] for row in run.epochs] == [2, 4, 6][: run.config.loop.epochs]
    else:
        changed, effect = EFFECTS[name]
        assert effect(replace(BASE, **changed(table))) != effect(BASE)


@pytest.mark.slow
def test_the_report_shows_predictions_residuals_and_trajectories():
    config = charax.RegressionConfig(width=2)
    loaded = config.load_data()
    task = config.build_task(loaded.spec)
    sections = task.report(task.build(jax.random.key(0)), loaded.splits, data="diabetes")
    assert [each.title for each in sections] == ["Predictions", "Learned characteristics x(s)", "Trajectories u(s)"]
    points, _, residuals = sections[0].figure.data
    observed = task.spec.target_standardizer.inverse(loaded.splits.test.targets)[:, 0]
    np.testing.assert_allclose(points.x, observed, rtol=1e-6)
    np.testing.assert_allclose(residuals.x, observed - np.asarray(points.y), rtol=1e-4, atol=1e-3)
    assert float(sections[0].details.rows["3"][0][0]) == pytest.approx(observed[3], rel=1e-3)


def test_evaluate_on_new_data_is_in_the_units_of_the_target(table, priced, tmp_path, capsys):
    answer = answer_of(capsys, "evaluate", priced.folder, "--data", table)
    task, model = charax.load_model(priced.folder)
    batch = charax.load_config(priced.folder).load_labelled(table, task.spec)
    value, _, _ = task.standardized_values(model, batch.inputs)
    errors = (value - task.spec.target_standardizer.inverse(batch.targets)) ** 2
    (row,) = answer["targets"]
    assert row["rmse"] == pytest.approx(np.sqrt(errors.mean()), rel=1e-5)
    low, high = row["rmse_interval"]
    assert low < row["rmse"] < high
    assert answer["samples"] == len(errors)


def test_predict_carries_columns_over_and_says_what_the_columns_are(table, priced, tmp_path, capsys):
    output = tmp_path / "p.csv"
    assert main(["predict", str(priced.folder), str(table), "--output", str(output), "--keep", "kind", "price"]) == 0
    shown = capsys.readouterr().out
    assert "lower …, upper …: the 95% prediction interval" in shown
    assert "kind, price: as in the inputs" in shown
    with output.open() as file:
        header, *rows = csv.reader(file)
    assert header == ["kind", "price", "input", "predicted price", "lower price", "upper price"]
    with table.open() as file:
        assert [row[:2] for row in rows] == [[one["kind"], one["price"]] for one in csv.DictReader(file, delimiter=";")]
    everything = charax.predict(priced.folder, table, keep="all")
    with table.open() as file:
        assert everything.columns[: len(everything.columns) - 4] == next(csv.reader(file, delimiter=";"))


def test_a_column_to_keep_that_is_not_there_is_named(table, priced):
    with pytest.raises(charax.DataError, match="no column 'nothing'"):
        charax.predict(priced.folder, table, keep=("nothing",))
