"""`charax train density`, and what can be done with its run."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.data import DataError, load_density_data
from charax.models.flows import VectorFlowDesign
from charax.solve import Solver
from charax.tasks.density import DensityConfig, DensityTask
from charax.tasks.density._following import follow_points, trajectories_of
from charax.train import LoopConfig, fit, load_config, load_model, load_run, quick_compilation, sample, small_products
from tests.train.commands import assert_explained


def test_a_run_reports_the_nll_and_leaves_figures(flow):
    answer = load_run(flow).summary()
    assert set(answer) >= {"run", "nll", "validation_nll", "objective", "nfe", "parameters", "seconds"}
    assert answer["objective"] == "likelihood"
    assert_explained("density", answer)
    assert answer["nfe"] == 4
    figures = {path.name for path in (flow / "plots").iterdir()}
    assert figures == {"training.png", "density.png", "flow.png", "characteristics.png"}


def test_evaluate_repeats_the_nll(flow, ask):
    assert ask("evaluate", flow)["nll"] == load_run(flow).summary()["nll"]


def test_a_penalty_is_reported_with_the_likelihood_it_is_added_to(conditional):
    row = load_run(conditional).epochs[-1]
    assert row["loss"] == pytest.approx(row["nll"] + 0.001 * row["kinetic"], rel=1e-5)
    assert min(row["kinetic"], row["jacobian"]) > 0


def test_samples_are_in_the_units_of_the_data(flow, tmp_path, ask):
    answer = ask("sample", flow, "-n", 50, "--output", tmp_path / "new.npz")
    assert answer["samples"] == 50
    assert Path(answer["picture"]).exists()
    with np.load(tmp_path / "new.npz") as drawn:
        assert set(drawn) == {"x"}
        assert drawn["x"].shape == (50, 2)
        assert 5 < drawn["x"].mean() < 15


def test_a_seed_gives_its_samples_and_a_low_temperature_gives_typical_ones(flow):
    first, again, other = (sample(flow, 40, seed=seed).values for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)
    assert sample(flow, 40, temperature=0.1).values.std(axis=0).max() < 0.3 * first.std(axis=0).max()


@pytest.mark.parametrize("name", ["new.png", "new.csv", "new"])
def test_samples_are_written_to_an_archive_that_says_so(name, flow, refuse, tmp_path):
    """A figure would overwrite the first one, and no program for tables could open the second."""
    assert "give --output the name of an .npz file" in refuse("sample", flow, "--output", tmp_path / name)
    assert not (tmp_path / name).exists()


def test_more_samples_than_the_limit_of_cells_are_refused(flow, refuse):
    assert "1,000,000,000 samples of shape (2,) have 2,000,000,000 cells" in refuse("sample", flow, "-n", 10**9)


def test_predict_gives_log_densities(flow, blob, tmp_path, ask):
    ask("predict", flow, blob, "--output", tmp_path / "out.csv")
    header, *rows = (tmp_path / "out.csv").read_text().splitlines()
    assert header == "input,log density"
    assert len(rows) == 80


def test_a_task_is_the_same_after_its_files(flow):
    task, _ = load_model(flow)
    config = load_config(flow)
    assert isinstance(task, DensityTask)
    assert task.spec == config.load_data().spec
    assert task.design == config.build_task(task.spec).design
    assert (task.kinetic_penalty, task.jacobian_penalty, task.trace) == (0.0, 0.0, "exact")


def test_a_flow_of_images_does_all_of_it_after_its_training(tmp_path, ask):
    """Its learned end times are numbers without an axis, and stay so in a file."""
    images = np.random.default_rng(0).integers(0, 256, (40, 4, 4), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", x=images)
    size = "--method node --width 2 --solver euler --steps 1 --epochs 1 --batch-size 14"
    place = ["--data", tmp_path / "images.npz", "--output", tmp_path, "--name", "run"]
    trained, run = ask("train", "density", *size.split(), *place), tmp_path / "run"
    assert set(trained) >= {"run", "bits_per_dim", "validation_bits_per_dim", "nfe", "parameters", "seconds"}
    assert ask("evaluate", run)["bits_per_dim"] == pytest.approx(trained["bits_per_dim"], rel=1e-6)
    assert ask("sample", run, "-n", 5, "--output", tmp_path / "new.npz")["samples"] == 5
    with np.load(tmp_path / "new.npz") as drawn:
        assert drawn["x"].shape == (5, 4, 4, 1)
        assert 0 <= drawn["x"].min() <= drawn["x"].max() <= 256
        np.savez(tmp_path / "in.npz", x=drawn["x"].round().clip(0, 255).astype(np.uint8))
    ask("predict", run, tmp_path / "in.npz", "--output", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "input,bits per dimension"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--blocks 2", "blocks: the flow of samples of shape (2,) has no such setting"),
        ("--data digits --sharpness 2", "sharpness: the flow of samples of shape"),
        ("--conditional", "no classes"),
        ("--data digits --conditional", "cannot be conditioned on classes: add --objective matching"),
        ("--data moons --preset paper", "no flow for 'moons'"),
        ("--data digits --preset paper", "no flow for 'digits'"),
        ("--data nowhere.csv", "nowhere.csv"),
        ("--batch-size 1", "batch_size must be at least 2"),
        ("--kinetic-penalty -1", "kinetic_penalty must be a number of at least 0"),
        ("--jacobian-penalty -1", "jacobian_penalty must be a number of at least 0"),
        ("--width 0", "width must be a number of at least 1"),
        ("--end-time 0", "end_time must be a number above 0"),
        ("--sharpness -2", "sharpness must be a number above 0"),
        ("--frequency-scale 0", "frequency_scale must be a number above 0"),
        ("--coupling ot", "coupling is a part of flow matching: add --objective matching"),
        ("--path cosine", "path is a part of flow matching"),
        ("--times uniform", "times is a part of flow matching"),
        ("--objective matching --kinetic-penalty 1", "integrals along a solve"),
        ("--objective matching+likelihood --epochs 1", "at least 2 epochs"),
        ("--objective matching --data digits --preset paper", "cannot be matched"),
        ("--objective matching --data digits --coupling ot", "partners of images are not coupled"),
        ("--hidden-classes 0.1", "add --conditional"),
        ("--conditional --hidden-classes 1", "a fraction below 1"),
        ("--trace exact --probes 2", "the trace exact has none"),
        ("--probes 0", "probes must be a number of at least 1"),
        ("--evaluated 0", "evaluated must be a number of at least 1"),
        ("--context nowhere", "circles has no column nowhere to condition on: it has no named columns, so leave"),
    ],
)
def test_a_bad_setting_is_a_sentence_and_nothing_is_written(flags, words, refuse, tmp_path):
    assert words in refuse("train", "density", "--output", tmp_path / "runs", *flags.split())
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n" + "1,nan\n" * 12, "b"),
        ("a,b\n" + "".join(f"{i},7\n" for i in range(12)), "column 'b' is constant"),
        ("a,b\n1,2\n", "at least 10"),
    ],
)
def test_a_bad_table_is_named(content, words, tmp_path):
    (tmp_path / "bad.csv").write_text(content)
    with pytest.raises(DataError, match=words):
        load_density_data(str(tmp_path / "bad.csv"))


def test_images_that_are_not_bytes_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.full((12, 8, 8), 0.5))
    with pytest.raises(DataError, match="uint8"):
        load_density_data(str(tmp_path / "x.npz"))


@pytest.mark.parametrize("method", ["node", "c-node"])
def test_trajectories_of_figures_are_those_of_one_solve(method):
    """Of more points than are followed at once, from one fraction of the end time to the next."""
    flow = VectorFlowDesign(method, width=4, end_time=2.0).build((2,), key=jax.random.key(0))
    data, fractions = np.random.default_rng(0).normal(size=(130, 2)).astype(np.float32), np.array([0.0, 0.3, 1.0])
    solver = Solver(rtol=1e-6, atol=1e-6)
    u, x = trajectories_of(flow, data, solver, fractions)
    whole = solver.solve(
        flow.field, jnp.asarray(data), s1=2.0, at=jnp.asarray(2 * fractions, jnp.float32), with_characteristic=True
    )
    np.testing.assert_allclose(u, whole.trajectory, atol=1e-4)
    assert (x is None) == (method == "node")
    if x is not None:
        np.testing.assert_allclose(x, whole.characteristic, atol=1e-4)


def test_toys_have_sharper_fields_than_tables_where_they_are_trained_by_likelihood(blob):
    sharpness = lambda **settings: DensityConfig(**settings).design((2,), None)[0].sharpness
    assert (sharpness(data="moons"), sharpness(data=str(blob))) == (8, 1)
    assert (sharpness(data="moons", objective="matching"), sharpness(data="moons", sharpness=2.0)) == (1, 2)


def test_the_name_of_a_run_tells_what_makes_it_another(tmp_path):
    labels = {
        DensityConfig(**change).label
        for change in ({}, {"shrink": 2}, {"sharpness": 8.0}, {"kinetic_penalty": 1.0}, {"jacobian_penalty": 1.0})
    } | {DensityConfig(objective=objective).label for objective in ("matching", "matching+likelihood")}
    assert len(labels) == 7


@pytest.mark.slow
def test_density_of_a_trained_flow_integrates_to_one():
    from charax.tasks.density._plots import density_on_grid

    config = DensityConfig(data="moons", points=2_560, loop=LoopConfig(epochs=10, batch_size=256))
    data = config.load_data()
    task = config.build_task(data.spec)
    fitted = fit(task, data.splits, config.loop, config.optimizer)
    axis, density = density_on_grid(fitted.model, task.solver, reach=6.0, points=401)
    assert abs(density.sum() * (axis[1] - axis[0]) ** 2 - 1) < 0.005


def test_metrics_are_plain_numbers(flow):
    lines = (flow / "metrics.jsonl").read_text().splitlines()
    assert lines
    for line in lines:
        assert json.loads(line, parse_constant=pytest.fail)


@pytest.mark.parametrize("method", ["node", "c-node"])
def test_points_of_figures_are_followed_with_their_densities_and_back(method):
    flow = VectorFlowDesign(method, width=4, end_time=2.0).build((2,), key=jax.random.key(0))
    data, solver = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32), Solver(rtol=1e-6, atol=1e-6)
    there = follow_points(flow, data, solver, np.array([0.0, 1.0]), with_density=True)
    exact = flow.forward(jnp.asarray(data), solver=solver)
    np.testing.assert_allclose(there.u[-1], exact.u, atol=1e-4)
    np.testing.assert_allclose(there.log_det[-1], exact.log_det, atol=1e-4)
    plain = follow_points(flow, data, solver, np.array([0.0, 1.0]))
    assert plain.log_det is None
    assert (plain.x is None) == (there.x is None) == (method == "node")
    if method == "c-node":
        np.testing.assert_allclose(there.x, plain.x, atol=1e-4)
    back = follow_points(flow, there.u[-1], solver, np.array([1.0, 0.0]), with_density=True)
    np.testing.assert_allclose(back.u[-1], data, atol=1e-4)


def test_all_figures_of_a_toy_share_one_program(caplog, tmp_path):
    config = DensityConfig(data="moons", points=64, width=4)
    data = config.load_data()
    task = config.build_task(data.spec)
    with jax.log_compiles(), caplog.at_level("WARNING"):
        paths = task.plot(task.build(jax.random.key(0)), data.splits, tmp_path, data="moons")
    assert {path.stem for path in paths} == {"density", "flow", "characteristics"}
    assert sum("Finished XLA compilation of jit(_between)" in record.message for record in caplog.records) == 1


def test_flows_of_few_columns_compile_quickly_and_those_of_images_run_fast():
    options = lambda **settings: (one := DensityConfig(**settings)).build_task(one.load_data().spec).compiler_options
    assert options(data="moons") == {**quick_compilation(), **small_products()} != {}
    assert options(data="digits") == {}
