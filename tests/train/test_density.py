"""Training a density from the command line, and what can be done with it."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from charax.cli import main
from charax.data import DataError, load_density_data
from charax.tasks.density import DensityConfig, DensityTask
from charax.train import LoopConfig, fit, from_json, load_model, load_run, to_json


def ask(capsys, *arguments) -> dict:
    assert main([*map(str, arguments), "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    return json.loads(line)


@pytest.fixture(scope="module")
def blob(tmp_path_factory) -> Path:
    """A table of two correlated columns and one of classes, which densities leave out."""
    x = np.random.default_rng(0).normal(size=(80, 2)) @ np.array([[3.0, 1.0], [0.0, 0.5]]) + 10
    path = tmp_path_factory.mktemp("data") / "blob.csv"
    rows = [f"{a},{b},{'ab'[i % 2]}" for i, (a, b) in enumerate(x)]
    path.write_text("\n".join(["a,b,target", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def density_run(blob, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    size = "--width 4 --characteristic-dim 2 --solver euler --steps 4 --kinetic 0.01 --epochs 3 --batch-size 16"
    assert main(["train", "density", "--data", str(blob), "--output", str(folder), "--name", "run", *size.split()]) == 0
    return folder / "run"


def test_a_run_reports_nll_and_leaves_pictures(density_run):
    answer = load_run(density_run).summary()
    assert set(answer) == {"run", "nll", "validation_nll", "nfe", "parameters", "seconds"}
    assert answer["nfe"] == 4
    pictures = {path.name for path in (density_run / "plots").iterdir()}
    assert pictures == {"training.png", "density.png", "flow.png", "characteristics.png"}


def test_evaluate_repeats_the_nll(density_run, capsys):
    assert ask(capsys, "evaluate", density_run)["nll"] == load_run(density_run).summary()["nll"]


def test_samples_are_in_the_units_of_the_data(density_run, tmp_path, capsys):
    answer = ask(capsys, "sample", density_run, "-n", 50, "--output", tmp_path / "new.npz")
    assert answer["samples"] == 50
    assert Path(answer["picture"]).exists()
    x = np.load(tmp_path / "new.npz")["x"]
    assert x.shape == (50, 2)
    assert 5 < x.mean() < 15


def test_predict_gives_log_densities(density_run, blob, tmp_path, capsys):
    ask(capsys, "predict", density_run, blob, "--output", tmp_path / "out.csv")
    header, *rows = (tmp_path / "out.csv").read_text().splitlines()
    assert header == "input,log density"
    assert len(rows) == 80


def test_a_flow_of_images_does_all_of_it_after_its_training(tmp_path, capsys):
    """Its learned end times are numbers without an axis, which a file has to keep so."""
    size = "--shrink 2 --width 2 --characteristic-dim 1 --solver euler --steps 2 --epochs 1 --batch-size 256"
    run = tmp_path / "run"
    trained = ask(capsys, "train", "density", "--data", "digits", *size.split(), "--output", tmp_path, "--name", "run")
    assert set(trained) == {"run", "bits_per_dim", "validation_bits_per_dim", "nfe", "parameters", "seconds"}
    assert ask(capsys, "evaluate", run)["bits_per_dim"] == trained["bits_per_dim"]
    assert ask(capsys, "sample", run, "-n", 5, "--output", tmp_path / "new.npz")["samples"] == 5
    images = np.load(tmp_path / "new.npz")["x"]
    assert images.shape == (5, 4, 4, 1)
    np.savez(tmp_path / "in.npz", x=images.round().clip(0, 16).astype(np.uint8))
    ask(capsys, "predict", run, tmp_path / "in.npz", "--output", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "input,bits per dimension"


def test_a_classifier_is_no_density(run, capsys):
    assert main(["sample", str(run)]) == 2
    assert "no density" in capsys.readouterr().err


def test_a_task_is_the_same_after_a_file(density_run):
    task, _ = load_model(density_run)
    assert isinstance(task, DensityTask)
    assert DensityTask.from_json(json.loads(json.dumps(task.to_json()))).to_json() == task.to_json()


def test_images_are_counted_in_their_own_grey_levels():
    digits = load_density_data("digits")
    assert digits.levels == 17
    assert digits.train.inputs.max() == 16
    assert set(np.unique(digits.train.inputs)) <= set(range(17))
    assert load_density_data("digits", shrink=2).shape == (4, 4, 1)


@pytest.mark.parametrize("name", ["circles", "moons", "pinwheel", "checkerboard"])
def test_toys_are_new_in_every_part_and_the_same_for_a_seed(name):
    toy, again = load_density_data(name, points=100), load_density_data(name, points=100)
    assert (toy.train.inputs == again.train.inputs).all()
    assert not (toy.train.inputs[:20] == toy.test.inputs[:20]).any()
    assert np.abs(toy.train.inputs).max() < 6


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n" + "1,nan\n" * 12, "where a finite number belongs"),
        ("a,b\n" + "".join(f"{i},7\n" for i in range(12)), "column 'b' is constant"),
        ("a,b\n1,2\n", "at least 10"),
    ],
)
def test_bad_tables_are_named(content, words, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=words):
        load_density_data(str(path))


def test_images_that_are_not_bytes_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.full((12, 8, 8), 0.5))
    with pytest.raises(DataError, match="uint8"):
        load_density_data(str(tmp_path / "x.npz"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--blocks", "2"], "has no such setting"),
        (["--data", "digits", "--sharpness", "2"], "sharpness: the flow of samples of shape"),
        (["--conditional"], "no classes"),
        (["--data", "moons", "--preset", "paper"], "no flow for 'moons'"),
        (["--data", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_bad_settings_are_a_sentence_and_status_2(arguments, words, capsys, tmp_path):
    assert main(["train", "density", "--output", str(tmp_path), *arguments]) == 2
    assert words in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["node", "c-node"])
@pytest.mark.parametrize("dataset", ["mnist", "cifar10"])
def test_one_full_training_step_of_the_papers_flows(dataset, method, capsys):
    """On two random images, with the paper's layers, solver and adjoint."""
    import equinox as eqx

    from charax.data import Split, Standardizer
    from charax.models.flows import PAPER_FLOW_SOLVER, paper_flow_design

    shape = {"mnist": (28, 28, 1), "cifar10": (32, 32, 3)}[dataset]
    task = DensityTask(
        paper_flow_design(dataset, method), PAPER_FLOW_SOLVER, shape, 256, Standardizer((0.0,), (1.0,), 255.0),
        trace="hutchinson",
    )  # fmt: skip
    images = np.random.default_rng(0).integers(0, 256, size=(2, *shape)).astype(np.float32)
    model = task.build(jax.random.key(0))
    loss = lambda model: task.loss(model, Split(images, np.zeros(2, np.int32)), jax.random.key(1))
    (value, metrics), gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss, has_aux=True))(model)
    assert np.isfinite(value)
    assert metrics["failed"] == 0
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"loop": LoopConfig(batch_size=1)}, "batch_size must be at least 2"),
        ({"kinetic": -1.0}, "kinetic must not be negative"),
        ({"width": 0}, "width must be at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        DensityConfig(**wrong)


def test_settings_survive_a_file():
    settings = DensityConfig(data="digits", kinetic=0.1)
    assert from_json(DensityConfig, to_json(settings)) == settings


@pytest.mark.slow
def test_density_of_a_trained_flow_integrates_to_one():
    from charax.plotting import density_on_grid

    settings = DensityConfig(data="moons", points=2_560, loop=LoopConfig(epochs=10, batch_size=256))
    problem = settings.prepare()
    fitted = fit(problem, settings.loop, settings.optimizer)
    axis, density = density_on_grid(fitted.model, problem.task.solver, reach=6.0, points=401)
    assert abs(density.sum() * (axis[1] - axis[0]) ** 2 - 1) < 0.005
