"""What is stored of a model, and that it comes back."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.data import Split, Standardizer
from charax.models import METHOD_NAMES, ImageArchitecture, find_design
from charax.nn import count_parameters
from charax.solve import Solver
from charax.tasks.classification import ClassificationConfig, ClassificationTask
from charax.train import Diverged, LoopConfig, Problem, SolverConfig, fit, from_json, load_model, save_model, to_json


def task(method: str = "c-node", shape: tuple[int, ...] = (3,)) -> ClassificationTask:
    architecture, solver = find_design("small", method, shape, width=4)
    return ClassificationTask(
        architecture=architecture,
        solver=solver,
        input_shape=shape,
        classes=("a", "b"),
        standardizer=Standardizer((0.5,), (2.0,)),
    )


@pytest.mark.parametrize("shape", [(3,), (5, 7, 1)], ids=["rows", "images"])
def test_a_model_comes_back_with_the_same_outputs(tmp_path, shape):
    original = task(shape=shape)
    model = original.build(jax.random.key(1))
    save_model(tmp_path, original, model)
    loaded = load_model(tmp_path)
    assert isinstance(loaded.task, ClassificationTask)
    raw = np.random.default_rng(0).normal(size=(6, *shape))
    assert np.array_equal(original.probabilities(model, raw), loaded.task.probabilities(loaded.model, raw))


def test_damaged_or_foreign_weights_are_refused(tmp_path):
    save_model(tmp_path, task(), task().build(jax.random.key(1)))
    weights = tmp_path / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-20])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        load_model(tmp_path)
    save_model(tmp_path, task("node"), task("node").build(jax.random.key(1)))
    weights.write_bytes(whole)
    with pytest.raises(ValueError, match="does not fit"):
        load_model(tmp_path)


@pytest.mark.parametrize("method", METHOD_NAMES)
@pytest.mark.parametrize("preset", ["small", "cpu"])
@pytest.mark.parametrize("shape", [(3,), (8, 8, 1), (28, 28, 1), (32, 31, 3), (2, 2, 1)])
def test_every_method_has_a_design_for_every_shape(preset, method, shape):
    design = find_design(preset, method, shape)
    assert from_json(type(design.architecture), to_json(design.architecture)) == design.architecture
    logits = jax.eval_shape(
        lambda x: design.architecture.build(shape, 7, key=jax.random.key(0))(x, solver=design.solver)[0],
        jnp.zeros((2, *shape)),
    )
    assert logits.shape == (2, 7)


def test_the_cpu_preset_is_within_the_papers_size():
    architecture, _ = find_design("cpu", "c-node", (28, 28, 1))
    assert isinstance(architecture, ImageArchitecture)
    assert architecture.characteristic_dim >= 2
    model = jax.eval_shape(lambda: architecture.build((28, 28, 1), 10, key=jax.random.key(0)))
    assert count_parameters(model) <= 89_000


def test_settings_survive_their_file():
    settings = ClassificationConfig(data="mnist", solver=SolverConfig(steps=3), loop=LoopConfig(seed=4, patience=2))
    assert from_json(ClassificationConfig, to_json(settings)) == settings
    with pytest.raises(ValueError, match="does not know the setting colour"):
        from_json(ClassificationConfig, {**to_json(settings), "colour": "red"})


def test_solver_settings_replace_what_they_name():
    fixed, adaptive = (
        Solver("euler", steps=2),
        SolverConfig(solver="dopri5", rtol=1e-4).change(Solver("euler", steps=2)),
    )
    assert SolverConfig().change(fixed).steps == 2
    assert adaptive.steps is None
    assert float(adaptive.rtol) == float(adaptive.atol) == 1e-4


@pytest.mark.slow
def test_a_backward_solve_that_fails_is_a_skipped_step():
    few = Solver("dopri5", rtol=1e-3, atol=1e-3, adjoint="backsolve", max_steps=2)
    failing = dataclasses.replace(task("node"), solver=few)
    split = Split(np.ones((8, 3), np.float32), np.zeros(8, np.int32))
    with pytest.raises(Diverged, match=r"10 steps in a row.*the solve failed"):
        fit(Problem(failing, split, split, split), LoopConfig(epochs=20, batch_size=8))


@pytest.mark.slow
def test_digits_reach_98_percent_within_a_minute(tmp_path):
    from charax.train import train

    answer = train(ClassificationConfig(), tmp_path / "run").summary()
    assert answer["accuracy"] >= 0.98
    assert answer["seconds"] <= 60
