"""`--conditional`: a density per class, in its log-densities, its samples and its predictions."""

import csv

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.train import load_model, load_run


@pytest.fixture
def predicted(conditional, pair, ask, tmp_path):
    """The columns of the predictions for the training table."""

    def predict(*flags: object) -> dict[str, np.ndarray]:
        ask("predict", conditional, pair, "--output", tmp_path / "out.csv", "--force", *flags)
        with (tmp_path / "out.csv").open() as file:
            rows = list(csv.DictReader(file))
        return {name: np.array([float(row[name]) for row in rows]) for name in rows[0] if name != "input"}

    return predict


def test_log_densities_differ_by_class_and_are_higher_for_the_right_one(predicted):
    columns = predicted()
    assert list(columns) == ["log density of high", "log density of low"]
    difference = columns["log density of high"] - columns["log density of low"]
    is_high = np.arange(200) % 2 == 1
    assert (difference[is_high] > 2).mean() > 0.95
    assert (difference[~is_high] < -2).mean() > 0.95


@pytest.mark.parametrize("name", ["low", "high"])
def test_a_class_by_name_is_that_column_alone(predicted, name):
    alone, both = predicted("--class", name), predicted()
    assert list(alone) == [f"log density of {name}"]
    np.testing.assert_allclose(alone[f"log density of {name}"], both[f"log density of {name}"], rtol=1e-4)


def test_samples_of_a_class_are_like_its_data(conditional, ask, tmp_path):
    drawn = {}
    for name in ("low", "high"):
        ask("sample", conditional, "-n", 100, "--class", name, "--output", tmp_path / "new.npz")
        with np.load(tmp_path / "new.npz") as file:
            assert set(file["y"]) == {name}
            drawn[name] = file["x"][:, 0]
    assert np.median(drawn["low"]) == pytest.approx(0, abs=2)
    assert np.median(drawn["high"]) == pytest.approx(10, abs=2)
    assert (drawn["low"] < 5).mean() > 0.9
    assert (drawn["high"] > 5).mean() > 0.9


def test_samples_without_a_class_are_of_all_in_turn(conditional, ask, tmp_path):
    ask("sample", conditional, "-n", 5, "--output", tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as file:
        assert file["y"].tolist() == ["high", "low", "high", "low", "high"]


@pytest.mark.parametrize("command", ["predict", "sample"])
def test_an_unknown_class_is_named_with_those_there_are(conditional, pair, refuse, command, tmp_path):
    inputs = [pair] if command == "predict" else []
    reason = refuse(command, conditional, *inputs, "--class", "middle", "--output", tmp_path / "out.npz")
    assert "does not know the class 'middle'; choose from high, low" in reason
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("command", ["predict", "sample"])
def test_a_model_that_is_not_conditional_has_no_classes(flow, blob, refuse, command):
    inputs = [blob] if command == "predict" else []
    assert "this model is not conditional: leave --class out" in refuse(command, flow, *inputs, "--class", "a")


def test_a_context_that_nobody_reads_is_refused_and_one_that_is_read_is_needed(flow, conditional):
    u, classes = jnp.zeros((2, 2)), jnp.eye(2)
    for folder, context in ((flow, classes), (conditional, None)):
        task, model = load_model(folder)
        with pytest.raises(ValueError, match="context"):
            model.log_prob(u, solver=task.solver, context=context)
        with pytest.raises(ValueError, match="context"):
            model.sample(2, key=jax.random.key(0), solver=task.solver, context=context)


def test_its_figures_are_samples(conditional):
    assert {path.name for path in (conditional / "plots").iterdir()} == {"training.png", "samples.png"}
    assert load_run(conditional).trained.task.conditional_classes == ("high", "low")
