"""`charax train pde`, from data to predictions."""

import csv
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.models import Scaling, build_regressor
from charax.pde import Burgers, Sine
from charax.tasks.pde import PDEConfig
from charax.train import load_model, load_run, save_config, save_model
from tests.train.commands import assert_explained


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_predictions_are_a_table_of_points_and_values(learned, tmp_path, ask):
    (tmp_path / "new.csv").write_text("x,t\n1.5,0.5\n1.4,0.2\n")
    answer = ask("predict", learned, tmp_path / "new.csv", "--output", tmp_path / "out.csv")
    assert answer["predictions"] == 2
    first, _ = rows_of(tmp_path / "out.csv")
    assert list(first) == ["x", "t", "u"]
    assert (first["x"], first["t"]) == ("1.5", "0.5")
    assert {path.name for path in (learned / "plots").iterdir()} == {"training.png", "fit.png", "solution.png"}


def test_evaluate_repeats_the_errors_of_the_run(learned, ask):
    ended, evaluated = load_run(learned).summary(), ask("evaluate", learned)
    assert_explained("pde", ended)
    for name in ("deviation_percent", "error_percent", "lost"):
        assert evaluated[name] == pytest.approx(ended[name], rel=1e-5)


@pytest.mark.parametrize(
    ("row", "words"),
    [("5,0.5", "row 3: x = 5 is outside"), ("1.5,-1", "row 3: t = -1 lies before"), ("1.5,", "row 3: column 't'")],
)
def test_a_point_that_cannot_be_predicted_is_named_and_nothing_is_written(learned, row, words, tmp_path, refuse):
    (tmp_path / "new.csv").write_text(f"x,t\n1.5,0.5\n{row}\n")
    assert words in refuse("predict", learned, tmp_path / "new.csv", "--output", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


@pytest.fixture(scope="module")
def crossing(tmp_path_factory) -> Path:
    """A C-NODE in the plane with random weights so large that its characteristics cross: some points have none.

    On a line there is always one.
    """
    folder = tmp_path_factory.mktemp("runs")
    config = PDEConfig(data="advection-2d", method="c-node", width=4, points=50, extrapolate=True)
    spec = config.load_data().spec
    random = np.random.default_rng(1)
    draw = lambda leaf: jnp.asarray(4 * random.normal(size=leaf.shape), leaf.dtype)
    model = config.build_task(spec).build(jax.random.key(0))
    save_config(folder, config)
    save_model(folder, spec, jax.tree.map(lambda leaf: draw(leaf) if eqx.is_inexact_array(leaf) else leaf, model))
    return folder


def write_grid(path: Path, *, reach: float) -> Path:
    points = [f"{x:.4f},{-x:.4f},{t:.4f}" for x in np.linspace(0, reach, 10) for t in np.linspace(0.01, reach, 5)]
    path.write_text("\n".join(["x1,x2,t", *points]) + "\n")
    return path


@pytest.fixture
def grid(tmp_path) -> Path:
    return write_grid(tmp_path / "grid.csv", reach=1.0)


def test_points_without_a_characteristic_are_marked_and_the_others_are_answered(crossing, grid, tmp_path, ask):
    answer = ask("predict", crossing, grid, "--output", tmp_path / "out.csv")
    rows = rows_of(tmp_path / "out.csv")
    failed = [row for row in rows if row["status"] != "ok"]
    assert len(rows) == answer["predictions"] == 50
    assert 0 < len(failed) == answer["failed"] < 50
    assert all(row["u"] == "" and "no learned characteristic leads to this point" in row["status"] for row in failed)
    assert all(row["x1"] and row["t"] for row in failed)
    assert all(np.isfinite(float(row["u"])) for row in rows if row["status"] == "ok")


def test_with_strict_they_are_an_error_that_names_the_first(crossing, grid, tmp_path, refuse):
    reason = refuse("predict", crossing, grid, "--strict", "--output", tmp_path / "out.csv", status=1)
    assert f"{grid}, row " in reason
    assert "no learned characteristic" in reason
    assert not (tmp_path / "out.csv").exists()


def test_points_outside_of_the_data_are_answered_if_that_is_asked_for(crossing, tmp_path, ask):
    far = write_grid(tmp_path / "far.csv", reach=2.0)
    answer = ask("predict", crossing, far, "--output", tmp_path / "out.csv")
    assert answer["failed"] < answer["predictions"] == 50


def test_lost_points_are_left_out_of_the_loss_and_too_many_skip_the_step(crossing):
    task, model = load_model(crossing)
    splits = PDEConfig(data="advection-2d", points=50).load_data().splits
    batch = splits.train.take(np.arange(40))
    loss, metrics = jax.jit(lambda batch: task.loss(model, batch, jax.random.key(0)))(batch)
    assert np.isfinite(loss)
    assert 0 < metrics["lost"] < 0.9
    assert metrics["failed"] == 0


def test_on_a_line_no_point_is_lost_however_wild_the_characteristics():
    model = build_regressor("c-node", Scaling.identity(1, 1), width=4, key=jax.random.key(0))
    random, x = np.random.default_rng(1), jnp.linspace(-3, 3, 40)[:, None]
    draw = lambda leaf: jnp.asarray(4 * random.normal(size=leaf.shape), leaf.dtype)
    evaluate = eqx.filter_jit(lambda model: model(x, jnp.full(40, 1.0)).found)
    for _ in range(5):
        wild = jax.tree.map(lambda leaf: draw(leaf) if eqx.is_inexact_array(leaf) else leaf, model)
        assert evaluate(wild).all()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--data nowhere.csv", "nowhere.csv"),
        ("--width 0", "width must be a number of at least 1"),
        ("--points 5", "points must be a number of at least 10"),
        ("--method equation --velocity-reads", "reads"),
        ("--method equation --known-source u+v", "u+v"),
        ("--method equation --known-initial x x", "a formula for each of them, got 2"),
        ("--method equation --period -1", "a period must be a number above 0"),
        ("--method equation --flux convex --velocity-reads x u", "a velocity that reads u only"),
    ],
)
def test_a_bad_setting_is_a_sentence_and_leaves_nothing(flags, words, refuse, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refuse("train", "pde", *flags.split())
    assert not list(tmp_path.iterdir())


def test_an_unknown_problem_is_named(refuse, tmp_path):
    assert "nothing" in refuse("reproduce", "pde", "--problem", "nothing", "--output", tmp_path)


@pytest.mark.slow
def test_c_node_learns_the_papers_problem(tmp_path, ask):
    answer = ask("reproduce", "pde", "--problem", "paper", "--method", "c-node", "--output", tmp_path)
    (row,) = answer["rows"]
    assert row["parameters"] <= 809
    assert row["deviation_percent_mean"] <= 0.25


@pytest.mark.slow
def test_structured_form_learns_burgers_equation(tmp_path, ask):
    answer = ask("reproduce", "pde", "--method", "equation", "--seeds", "1", "--output", tmp_path)
    assert answer["equation"]["velocity_error_percent_max"] <= 2


@pytest.mark.slow
def test_few_sensors_with_many_times_are_enough(tmp_path, ask):
    x, t = (axis.reshape(-1) for axis in np.meshgrid(np.linspace(1, 7, 8), np.linspace(0, 0.6, 40)))
    u = Burgers(profile=Sine(amplitude=1.0, mean=2.0), domain=((-3.0, 9.0),)).exact(
        jnp.asarray(x)[:, None], jnp.asarray(t)
    )
    noisy = np.asarray(u) + 0.02 * np.random.default_rng(0).standard_normal(len(x))
    np.savetxt(tmp_path / "sensors.csv", np.stack([x, t, noisy], axis=1), delimiter=",", header="x,t,u", comments="")
    flags = ["--method", "equation", "--width", "8", "--epochs", "2", "--learning-rate", "0.01", "--name", "sensors"]
    answer = ask("train", "pde", "--data", tmp_path / "sensors.csv", *flags, "--output", tmp_path)
    (term,) = answer["terms"]
    assert term["name"] == "u u_x"
    assert abs(term["coefficient"] - 1) <= 3 * term["standard_error"] <= 0.15
    assert abs(answer["shock_time"] - 1) <= 0.05
