"""`charax train density --source NAME`: a flow between two data sets."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from PIL import Image

from charax.models.matching import wasserstein_distance
from charax.tasks.density import DensityConfig, TransportTask
from charax.train import LoopConfig, OptimizerConfig, load_run, train_or_load
from tests.tasks.density.couplings import excess_cost

CONFIG = DensityConfig(
    data="moons",
    source="eight-gaussians",
    objective="matching",
    points=400,
    passes=10,
    optimizer=OptimizerConfig(learning_rate=1e-2, weight_decay=0.0),
    loop=LoopConfig(epochs=3, batch_size=64),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train_or_load(CONFIG, tmp_path_factory.mktemp("transport") / "run")


def test_partners_come_from_the_source_and_are_coupled():
    splits = CONFIG.load_data().splits
    # The eight Gaussians lie on a circle of radius 4/√2, outside of the moons.
    assert np.linalg.norm(splits.train.source, axis=1).mean() == pytest.approx(4 / np.sqrt(2), rel=0.05)
    assert excess_cost(splits.validation.inputs, splits.validation.source) < 0.02
    loose = dataclasses.replace(CONFIG, coupling="independent").load_data().splits
    assert excess_cost(loose.validation.inputs, loose.validation.source) > 0.5


def test_partners_are_coupled_anew_in_every_epoch():
    data = dataclasses.replace(CONFIG, passes=1).load_data()
    task, order = CONFIG.build_task(data.spec), np.arange(384).reshape(6, 64)
    first, second = (task.prepare_epoch(data.splits.train, order, np.random.default_rng(i)) for i in (0, 1))
    assert not np.array_equal(first.source, second.source)
    assert excess_cost(first.inputs[order.ravel()], first.source[order.ravel()]) < 0.02


def test_a_short_training_brings_the_source_closer_to_the_data(run):
    assert isinstance(run.trained[0], TransportTask)
    test, summary = run.splits.test, run.summary()
    details = run.evaluate_in_full()
    before = wasserstein_distance(test.source, test.inputs)
    assert details["wasserstein"] < before / 3
    assert summary["validation_wasserstein"] < before / 3
    assert summary["validation_wasserstein_of_data"] < summary["validation_wasserstein"]
    assert summary["objective"] == "matching"
    assert "nll" not in summary


def test_samples_are_mapped_points_of_the_source(run):
    task, model = run.trained
    drawn = task.sample(model, 100, seed=3).values
    np.testing.assert_allclose(drawn, task.transport(model, task.draw_source(100, seed=3)), rtol=1e-5, atol=1e-5)
    assert not np.array_equal(drawn, task.sample(model, 100, seed=4).values)
    with pytest.raises(ValueError, match="leave --temperature out"):
        task.sample(model, 10, temperature=0.5)


def test_a_prediction_is_where_the_flow_takes_a_row_of_the_source(run, tmp_path):
    task, model = run.trained
    source = run.splits.test.source[:5]
    np.savez(tmp_path / "source.npz", x=source)
    found = task.predict(model, tmp_path / "source.npz")
    assert found.columns == ["input", "u1", "u2"]
    values = np.array([row[1:3] for row in found.rows], float)
    np.testing.assert_allclose(values, task.transport(model, source), rtol=1e-4, atol=1e-4)


def test_the_exported_program_is_the_map(run):
    task, model = run.trained
    source = run.splits.test.source[:4]
    program = task.programs(model)["transport"]
    np.testing.assert_allclose(jax.jit(program.function)(source), task.transport(model, source), rtol=1e-4, atol=1e-4)


def test_figures_and_report(run, tmp_path):
    task, model = run.trained
    (path,) = task.plot(model, run.splits, tmp_path, data="moons")
    edges = np.asarray(Image.open(path).convert("L"))
    assert min(edge.min() for edge in (edges[0], edges[-1], edges[:, 0], edges[:, -1])) > 250  # no title is cut off
    assert path.name == "transport.png"
    assert path.stat().st_size > 10_000
    (section,) = task.report(model, run.splits, data="moons")
    begin, end = (np.asarray(section.figure.frames[i].data[0].x) for i in (0, -1))
    assert np.abs(begin).max() > np.abs(end).max()  # from the large circle to the moons


def test_the_run_is_found_again(run):
    assert load_run(run.folder).config == run.config
    assert json.loads((run.folder / "config.json").read_text())["config"]["source"] == "eight-gaussians"
    assert CONFIG.label == "density-moons-c-node-from-eight-gaussians"


def write_table(path, names: str, rows) -> str:
    path.write_text("\n".join([names, *(f"{a:.6f},{b:.6f}" for a, b in rows)]) + "\n")
    return str(path)


@pytest.mark.parametrize("seed", [0, 5])
def test_samples_start_from_training_rows_of_a_file(tmp_path, seed):
    """Of its training split, in its units, whatever the seed and the order of its columns."""
    rows = np.random.default_rng(0).standard_t(2, size=(60, 2)) * [10, 0.1] + [100, 5]
    source = write_table(tmp_path / "source.csv", "b,a", rows)
    table = write_table(tmp_path / "data.csv", "a,b", rows[:, ::-1] + 1)
    config = dataclasses.replace(
        CONFIG, data=table, source=source, points=None, loop=dataclasses.replace(CONFIG.loop, seed=seed)
    )
    data = config.load_data()
    task = config.build_task(data.spec)
    raw = data.spec.source_standardizer.inverse(task.draw_source(50, seed=1))
    distances = np.abs(raw[:, None] - rows[None, :, ::-1]).max(axis=2)
    assert distances.min(axis=1).max() < 1e-3  # each is a row, with the columns in the order of the data
    known = {tuple(row) for row in np.round(data.splits.train.source, 3)}
    assert {tuple(row) for row in np.round(task.draw_source(50, seed=1), 3)} <= known
    (tmp_path / "source.csv").rename(tmp_path / "moved.csv")
    with pytest.raises(ValueError, match="Put the file back, or map rows of another one"):
        task.draw_source(5, seed=1)


def test_columns_with_other_names_are_paired_as_they_come_and_that_is_said(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 2))
    tables = [write_table(tmp_path / f"{names}.csv", names, rows) for names in ("a,b", "height,width")]
    notes = dataclasses.replace(CONFIG, data=tables[0], source=tables[1], points=None).load_data().notes
    assert notes[-1].endswith("are paired as they come: height with a, width with b")


def test_evaluated_limits_the_samples_that_are_compared():
    splits = dataclasses.replace(CONFIG, evaluated=5).load_data().splits
    assert (len(splits.validation.inputs), len(splits.test.source)) == (5, 5)
    assert len(splits.train.inputs) > 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "likelihood"}, "add --objective matching"),
        ({"objective": "matching+likelihood"}, "add --objective matching"),
        ({"conditional": True}, "no conditional: leave it out"),
        ({"trace": "exact"}, "no trace: leave it out"),
        ({"preset": "paper", "data": "circles"}, "no preset: leave it out"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **change)


def test_other_shapes_are_refused(tmp_path):
    np.savez(tmp_path / "three.npz", x=np.random.default_rng(0).normal(size=(50, 3)))
    with pytest.raises(ValueError, match="keeps the number of columns"):
        dataclasses.replace(CONFIG, source=str(tmp_path / "three.npz")).load_data()
    with pytest.raises(ValueError, match="is the data and the source"):
        dataclasses.replace(CONFIG, source="moons").load_data()
    with pytest.raises(ValueError, match="has images"):
        dataclasses.replace(CONFIG, source="digits").load_data()
