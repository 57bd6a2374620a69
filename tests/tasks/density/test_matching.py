"""`charax train density --objective matching`: what is minimized, with which partners, and in which epochs."""

import dataclasses

import jax
import numpy as np
import pytest

from charax.data import Standardizer
from charax.models.matching import PATHS, TIMES, FlowMatching
from charax.solve import Solver
from charax.tasks.density import DensityBatch, DensityConfig, DensitySpec, MatchingDesign
from charax.train import LoopConfig, OptimizerConfig, SolverConfig, fit, load_run
from tests.tasks.density.couplings import excess_cost

SPEC = DensitySpec((2,), None, Standardizer((0.0,), (1.0,)))
CONFIG = DensityConfig(
    objective="matching",
    width=4,
    characteristic_dim=2,
    frequencies=2,
    solver=SolverConfig(solver="euler", steps=2),
    loop=LoopConfig(epochs=4, batch_size=16),
)
GENERATOR = np.random.default_rng(0)
BATCH = DensityBatch(GENERATOR.normal(size=(64, 2)).astype(np.float32), np.arange(64, dtype=np.int32) % 2)
ORDER = np.arange(64).reshape(4, 16)


def test_the_loss_is_that_of_matching_and_solves_nothing():
    task = CONFIG.build_task(SPEC)
    model = task.build(jax.random.key(0))
    loss = lambda batch, key: task.loss(model, batch, key)
    text = str(jax.make_jaxpr(loss)(BATCH, jax.random.key(0)))
    assert "while[" not in text
    assert "scan[" not in text
    value, metrics = jax.jit(loss)(BATCH, jax.random.key(0))
    # The field is small at first, so the loss is about the mean of |z − u|² per dimension, of two standard normals.
    assert 1.2 < float(value) < 3
    assert (float(metrics["failed"]), float(metrics["nfe"])) == (0, 1)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("times", TIMES)
def test_the_path_and_the_times_are_those_that_are_named(path, times):
    assert MatchingDesign(path=path, times=times).build() == FlowMatching(PATHS[path], TIMES[times])


@pytest.mark.parametrize("change", [{"path": "cosine"}, {"path": "variance-preserving"}, {"times": "uniform"}])
def test_the_path_and_the_times_reach_the_loss(change):
    losses = []
    for config in (CONFIG, dataclasses.replace(CONFIG, **change)):
        task = config.build_task(SPEC)
        losses.append(float(task.loss(task.build(jax.random.key(0)), BATCH, jax.random.key(0))[0]))
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)


def test_partners_are_drawn_in_the_step_unless_they_are_coupled():
    same = MatchingDesign().couple(BATCH, ORDER, np.random.default_rng(0), scale=1.0, has_classes=False)
    assert same is BATCH
    coupled = MatchingDesign(coupling="ot").couple(BATCH, ORDER, np.random.default_rng(0), scale=2.0, has_classes=False)
    assert coupled.source is not None
    assert 1.5 < coupled.source.std() < 2.5
    assert excess_cost(BATCH.inputs, coupled.source) < 0.05  # among all rows, and not only within a mini-batch


def test_coupling_is_within_classes_and_contexts():
    couple = MatchingDesign(coupling="ot").couple
    by_class = couple(BATCH, ORDER, np.random.default_rng(0), scale=1.0, has_classes=True).source
    assert by_class is not None
    drawn = np.random.default_rng(0).standard_normal((64, 2), np.float32)
    for label in (0, 1):
        rows = BATCH.targets == label
        np.testing.assert_array_equal(np.sort(by_class[rows], axis=0), np.sort(drawn[rows], axis=0))
        assert excess_cost(BATCH.inputs[rows], by_class[rows]) < 0.02
    context = BATCH._replace(context=(1e3 * np.arange(64.0)[:, None]).astype(np.float32))
    far = couple(context, ORDER, np.random.default_rng(0), scale=1.0, has_classes=False).source
    np.testing.assert_array_equal(far, np.random.default_rng(0).standard_normal((64, 2), np.float32))


def test_a_source_of_its_own_is_permuted_in_every_epoch():
    source = np.arange(128.0, dtype=np.float32).reshape(64, 2)
    given = BATCH._replace(source=source)
    first, second = (
        MatchingDesign().couple(given, ORDER, np.random.default_rng(seed), scale=1.0, has_classes=False).source
        for seed in (0, 1)
    )
    assert first is not None
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(np.sort(first, axis=0), source)


def test_matched_toys_are_validated_with_fewer_points_than_they_are_tested_with():
    """An epoch of matching takes a second, the likelihood of 5,000 points does, too."""
    config = dataclasses.replace(CONFIG, data="moons", objective="matching", evaluated=None)
    by_likelihood = dataclasses.replace(config, objective="likelihood").load_data().splits
    splits = config.load_data().splits
    assert (len(splits.validation.inputs), len(splits.test.inputs)) == (1_000, 10_240)
    assert len(by_likelihood.validation.inputs) == 5_120
    assert len(dataclasses.replace(config, evaluated=70).load_data().splits.test.inputs) == 70


def test_passes_over_a_matched_toy_see_new_points():
    """Four passes of the same 25,600 points overfit; those that are given are repeated."""
    config = dataclasses.replace(CONFIG, data="moons", objective="matching")
    train = config.load_data().splits.train.inputs
    assert len(np.unique(train, axis=0)) == len(train) == 102_400
    given = dataclasses.replace(config, points=25_600).load_data().splits.train.inputs
    assert (len(np.unique(given, axis=0)), len(given)) == (25_600, 102_400)
    assert len(dataclasses.replace(config, objective="likelihood").load_data().splits.train.inputs) == 25_600


def test_small_data_are_repeated_within_an_epoch_of_matching(blob):
    repeated = dataclasses.replace(CONFIG, data=str(blob)).load_data().splits.train
    once = dataclasses.replace(CONFIG, data=str(blob), objective="likelihood").load_data().splits.train
    assert len(once.inputs) == 56
    assert len(repeated.inputs) >= 100 * 16
    np.testing.assert_array_equal(repeated.inputs[:56], once.inputs)


@pytest.fixture(scope="module")
def finetuned():
    """Matching with coupled partners, then likelihood with a penalty, on a Gaussian that is not standard."""
    x = (GENERATOR.normal(size=(600, 2)) * [0.5, 2.0] + 1).astype(np.float32)
    split = lambda rows: DensityBatch(x[rows], np.zeros(len(x[rows]), np.int32))
    config = dataclasses.replace(CONFIG, objective="matching+likelihood", coupling="ot", kinetic_penalty=0.01)
    task = config.build_task(SPEC)
    splits = (split(slice(0, 400)), split(slice(400, 500)), split(slice(500, 600)))
    loop = LoopConfig(epochs=4, batch_size=50)
    return task, fit(task, type(config.load_data().splits)(*splits), loop, OptimizerConfig(learning_rate=2e-2, ema=0.9))


def test_the_likelihood_finishes_what_matching_began(finetuned):
    task, fitted = finetuned
    rows = fitted.history[:-1]
    assert task.objective == "matching+likelihood"
    assert [row["nfe"] for row in rows] == [1, 1, 1, 2]  # the last quarter of the epochs solves, with two Euler steps
    assert [row["kinetic"] is None for row in rows] == [True, True, True, False]
    assert rows[-1]["loss"] == pytest.approx(rows[-1]["nll"] + 0.01 * rows[-1]["kinetic"], rel=1e-4)
    assert rows[-1]["validation_nll"] < rows[0]["validation_nll"]


def test_the_stages_of_a_task_train_one_model(finetuned):
    task, _ = finetuned
    (begin, first), (later, second) = task.stages
    assert (begin, later) == (0.0, 0.75)
    assert first.matching is not None
    assert second.matching is None
    assert first.design == second.design


@pytest.fixture(scope="session")
def given_a(blob, tmp_path_factory):
    """The folder of a run that learned column b of a table given column a, by coupled matching with all other flags."""
    from charax.cli import main

    folder = tmp_path_factory.mktemp("runs")
    flags = "--objective matching --context a --coupling ot --path cosine --times uniform --ema 0.9 --width 4"
    size = "--characteristic-dim 2 --frequencies 2 --solver euler --steps 4 --epochs 2 --batch-size 16 --passes 1"
    place = ["--data", str(blob), "--output", str(folder), "--name", "run"]
    assert main(["train", "density", *place, *flags.split(), *size.split()]) == 0
    return folder / "run"


def test_a_density_given_columns_is_trained_evaluated_and_asked(given_a, blob, tmp_path, ask):
    run = load_run(given_a)
    assert run.summary()["objective"] == "matching"
    task, model = run.trained
    assert task.spec.shape == (1,)
    assert task.spec.context_names == ("a",)
    assert ask("evaluate", given_a)["nll"] == pytest.approx(run.summary()["nll"], rel=1e-6)
    ask("predict", given_a, blob, "--output", tmp_path / "out.csv")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 81
    samples, along, *curves = task.report(model, run.splits, data="blob")
    assert "drawn given the a of a test row" in samples.text
    assert along.title == "Density along s"
    assert len(curves) == 2  # characteristics and states
    # The density of b integrates to 1 for each a.
    b = np.linspace(-60, 80, 400)
    raw = np.column_stack([np.full(400, 10.0), b])
    density = np.exp(task.log_density(model, raw)) / task.spec.standardizer.std[1]
    assert density.sum() * (b[1] - b[0]) == pytest.approx(1, abs=0.02)


def test_samples_of_a_density_given_columns_keep_them(given_a, tmp_path, ask, refuse):
    assert "this density is conditioned on a: give rows of them" in refuse("sample", given_a)
    (tmp_path / "a.csv").write_text("a\n5\n15\n")
    ask("sample", given_a, "-n", 6, "--context", tmp_path / "a.csv", "--output", tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as drawn:
        np.testing.assert_allclose(drawn["x"][:, 0], [5, 15] * 3, rtol=1e-5)
        assert len(np.unique(drawn["x"][:, 1])) == 6
    (tmp_path / "a.csv").write_text('a\n5\n""\n\n')
    reason = refuse("sample", given_a, "-n", 4, "--context", tmp_path / "a.csv")
    assert "a.csv, row 3: column 'a' has nothing, not a finite number: fill it, or remove such rows" in reason


def test_a_density_without_context_takes_none(flow, tmp_path, refuse):
    (tmp_path / "a.csv").write_text("a\n5\n")
    assert "not conditioned on columns" in refuse("sample", flow, "--context", tmp_path / "a.csv")


def test_what_a_density_cannot_do_names_what_can_be_done(given_a, tmp_path, refuse):
    """Guided samples are of classes, which are not hidden next to columns of context."""
    (tmp_path / "a.csv").write_text("a\n5\n")
    guided = ("sample", given_a, "--context", tmp_path / "a.csv", "--guidance", 1)
    assert "conditioned on columns cannot be guided: leave --guidance out" in refuse(*guided)
    assert "use charax predict" in refuse("evaluate", given_a, "--data", tmp_path / "a.csv")


def test_the_context_leaves_a_column_to_learn(blob):
    with pytest.raises(ValueError, match="all columns are context"):
        DensityConfig(data=str(blob), context=("a", "b")).load_data()
    with pytest.raises(ValueError, match="no column c to condition on: its columns are a, b"):
        DensityConfig(data=str(blob), context=("c",)).load_data()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["node", "c-node"])
def test_density_of_a_matched_flow_integrates_to_one(method):
    from charax.tasks.density._plots import density_on_grid

    config = DensityConfig(
        data="moons", method=method, objective="matching", points=5_120, loop=LoopConfig(epochs=2, batch_size=256)
    )
    data = config.load_data()
    task = config.build_task(data.spec)
    fitted = fit(task, data.splits, config.loop, config.optimizer)
    assert fitted.history[-1]["test_nll"] < 2.2  # a normal distribution has 2.6
    axis, density = density_on_grid(fitted.model, Solver(rtol=1e-5, atol=1e-5), reach=6.0, points=301)
    assert abs(density.sum() * (axis[1] - axis[0]) ** 2 - 1) < 0.01


@pytest.mark.parametrize(
    ("flags", "rate"),
    [
        ({"objective": "matching"}, 1e-2),
        ({"objective": "matching", "source": "eight-gaussians"}, 1e-2),
        ({"objective": "matching", "optimizer": OptimizerConfig(learning_rate=3e-3)}, 3e-3),
        ({"objective": "likelihood"}, 5e-3),
        ({"objective": "matching", "data": "digits"}, 5e-3),
    ],
)
def test_toys_are_matched_with_a_larger_learning_rate(flags, rate):
    config = DensityConfig(**{"data": "moons", "points": 64, **flags})
    completed, _ = config.complete(config.load_data())
    assert completed.optimizer.learning_rate == rate
