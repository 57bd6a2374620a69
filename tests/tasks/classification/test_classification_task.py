"""What is built from a `ClassificationConfig`, field by field; and a model that comes back from its files."""

import itertools
from dataclasses import replace
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from charax.data import Split, Standardizer
from charax.models import METHOD_NAMES, ClassifierEnsemble, ImageArchitecture, Preset, find_design
from charax.nn import count_parameters
from charax.tasks.classification import ClassificationConfig, ClassificationSpec, ClassificationTask
from charax.train import (
    LoopConfig,
    OptimizerConfig,
    from_json,
    load_model,
    save_config,
    save_model,
    table_recipe,
    to_json,
)
from charax.train._step import initial_state, make_epoch, make_optimizer
from tests.tasks.fields import Case, changed_parts, fields_of, shared_cases


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> dict[str, Case]:
    folder = tmp_path_factory.mktemp("data")
    rows = [f"{i * 7 % 11},{i % 5},{'ab'[i % 2]},{'xyz'[i % 3]}" for i in range(60)]
    text = "\n".join(["height,depth,target,color", *rows])
    (folder / "table.csv").write_text(text)
    (folder / "other.csv").write_text(text.replace("10,", "9,"))
    # With commas inside its texts, so that a separator must be chosen.
    (folder / "both.csv").write_text("\n".join(["a,b;target", *(f"{i},{i % 7};{i % 2}" for i in range(60))]))
    images = np.random.default_rng(0).integers(0, 256, (40, 8, 8), dtype=np.uint8)
    np.savez(folder / "images.npz", x=images, y=np.arange(40) % 2)
    for i, image in enumerate(images):
        (folder / "pets" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / "pets" / "ab"[i % 2] / f"{i}.png")
    table = ClassificationConfig(data=str(folder / "table.csv"), method="c-node")
    pictures = ClassificationConfig(data=str(folder / "images.npz"))
    ambiguous = ClassificationConfig(data=str(folder / "both.csv"), target="b;target", separator=",")
    return {
        **shared_cases(table),
        "data": Case(table, {"data": str(folder / "other.csv")}, "data"),
        "target": Case(table, {"target": "color"}, "spec"),
        "separator": Case(ambiguous, {"separator": ";", "target": "target"}, "spec"),
        "size": Case(ClassificationConfig(data=str(folder / "pets")), {"size": 4}, "data"),
        "shrink": Case(pictures, {"shrink": 2}, "data"),
        "max_samples": Case(table, {"max_samples": 30}, "data"),
        "augmentation": Case(pictures, {"augmentation": "affine"}, "spec"),
        "method": Case(table, {"method": "node"}, "model"),
        "preset": Case(pictures, {"preset": "dense"}, "model"),
        "members": Case(table, {"members": 3}, "model"),
        "width": Case(table, {"width": 5}, "model"),
        "augment_dim": Case(
            ClassificationConfig(data=table.data, method="anode"), {"augment_dim": 3}, "model"
        ),
        "characteristic_dim": Case(table, {"characteristic_dim": 3}, "model"),
        "jacobian": Case(table, {"jacobian": "joint"}, "model"),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore::charax.data.DataWarning")  # images are resized
@pytest.mark.parametrize("field", fields_of(ClassificationConfig))
def test_every_field_changes_what_it_is_for(cases, field):
    assert cases[field].part in changed_parts(cases[field])


@pytest.mark.parametrize("shape", [(3,), (5, 7, 1)], ids=["rows", "images"])
def test_a_model_comes_back_with_the_same_outputs(tmp_path, shape):
    config = ClassificationConfig(width=4)
    spec = ClassificationSpec(shape, ("a", "b"), Standardizer((0.5,), (2.0,)))
    task = config.build_task(spec)
    model = task.build(jax.random.key(1))
    save_config(tmp_path, config)
    save_model(tmp_path, spec, model)
    loaded = load_model(tmp_path)
    assert isinstance(loaded.task, ClassificationTask)
    assert loaded.task.spec == spec
    raw = np.random.default_rng(0).normal(size=(6, *shape))
    assert np.array_equal(task.probabilities(model, raw), loaded.task.probabilities(loaded.model, raw))


SHAPES = [(3,), (8, 8, 1), (28, 28, 1), (32, 31, 3), (2, 2, 1)]
FEW = [
    *(("small", method, (8, 8, 1)) for method in METHOD_NAMES),
    *(("small", "c-node", shape) for shape in SHAPES),
    *((preset, "c-node", (28, 28, 1)) for preset in ("cpu", "dense", "ode")),
]
ALL = list(itertools.product(get_args(Preset), METHOD_NAMES, SHAPES))


@pytest.mark.parametrize("designs", [pytest.param(FEW, id="some"), pytest.param(ALL, id="all", marks=pytest.mark.slow)])
def test_every_method_has_a_design_for_every_shape(designs):
    for preset, method, shape in designs:
        if preset == "paper" and len(shape) > 1:
            continue  # has models for its own data sets only
        architecture, solver = find_design(preset, method, shape)
        assert from_json(type(architecture), to_json(architecture)) == architecture
        logits = jax.eval_shape(
            lambda x: architecture.build(x.shape[1:], 7, key=jax.random.key(0))(x, solver=solver)[0],  # noqa: B023
            jnp.zeros((2, *shape)),
        )
        assert logits.shape == (2, 7), (preset, method, shape)


def test_the_cpu_preset_is_within_the_papers_size():
    architecture, _ = find_design("cpu", "c-node", (28, 28, 1))
    assert isinstance(architecture, ImageArchitecture)
    assert architecture.characteristic_dim >= 2
    model = jax.eval_shape(lambda: architecture.build((28, 28, 1), 10, key=jax.random.key(0)))
    assert count_parameters(model) <= 89_000


def test_a_failed_solve_counts_as_wrong_and_its_loss_is_not_finite():
    config = ClassificationConfig(method="node", width=4)
    spec = ClassificationSpec((2,), ("a", "b"), Standardizer((0.0,), (1.0,)))
    task = config.build_task(spec)
    batch = Split(jnp.array([[0.0, 0.0], [jnp.nan, 0.0]]), jnp.array([0, 1], jnp.int32))
    model = task.build(jax.random.key(0))
    metrics = jax.jit(lambda batch: task.metrics(model, batch))(batch)  # both are in one solve
    assert metrics["failed"].tolist() == [1, 1]
    assert metrics["accuracy"].tolist() == [0, 0]
    assert np.isnan(metrics["loss"]).all()


def test_augmentation_is_for_images_and_can_be_switched_off(cases):
    with pytest.raises(ValueError, match="--augmentation affine is for images: leave it out for tables"):
        replace(cases["width"].base, augmentation="affine").load_data()
    assert ClassificationConfig().load_data().spec.augmentation == "affine"
    assert ClassificationConfig(augmentation="none").load_data().spec.augmentation == "none"


def test_a_step_learns_from_augmented_images():
    config = ClassificationConfig(preset="dense", method="node", width=4)
    spec = config.load_data().spec
    split = Split(np.random.default_rng(0).normal(size=(4, 8, 8, 1)).astype(np.float32), np.arange(4, dtype=np.int32))
    losses = {}
    for augmentation in ("none", "affine", "flip-crop"):
        task = config.build_task(replace(spec, augmentation=augmentation))
        transform = make_optimizer(OptimizerConfig(), epochs=1, steps_per_epoch=1)
        state, unflatten = initial_state(task, split, transform, seed=0, ema=None)
        losses[augmentation] = float(make_epoch(task, unflatten, transform, None)(state, split, None)[1].loss[0])
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), 0)
        expected, _ = task.loss(unflatten(state.params), task.augment(split, key), key)
        assert losses[augmentation] == pytest.approx(float(expected), rel=1e-5)
    assert len(set(losses.values())) == 3


def test_members_are_trained_by_themselves_and_judged_by_the_mean_of_their_probabilities():
    config = ClassificationConfig(method="node", width=4, members=3)
    spec = ClassificationSpec((2,), ("a", "b"), Standardizer((0.0,), (1.0,)))
    task = config.build_task(spec)
    model = task.build(jax.random.key(0))
    assert isinstance(model, ClassifierEnsemble)
    single = replace(config, members=1).build_task(spec)
    batch = Split(np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32), np.arange(8, dtype=np.int32) % 2)
    loss, metrics = task.loss(model, batch, jax.random.key(1))
    each = [single.loss(model.member(i), batch, jax.random.key(1))[0] for i in range(3)]
    assert float(loss) == pytest.approx(np.mean(each), rel=1e-5)
    assert len(set(map(float, each))) == 3
    probabilities = np.mean([single.probabilities(model.member(i), batch.inputs) for i in range(3)], axis=0)
    np.testing.assert_allclose(task.probabilities(model, batch.inputs), probabilities, rtol=1e-5)
    right = probabilities[np.arange(8), batch.targets]
    np.testing.assert_allclose(task.metrics(model, batch)["loss"], -np.log(right), rtol=1e-4)
    assert float(metrics["accuracy"]) == np.mean(right > 0.5)


def test_what_is_left_out_is_chosen_from_the_rows_and_said(cases):
    config = replace(cases["width"].base, width=7, loop=LoopConfig(epochs=9))
    complete, (note,) = config.complete(config.load_data())
    recipe = table_recipe(42)
    assert (complete.width, complete.loop.epochs) == (7, 9)
    assert (complete.members, complete.loop.batch_size) == (recipe.members, recipe.batch_size)
    assert (complete.loop.patience, complete.optimizer.learning_rate) == (recipe.patience, recipe.learning_rate)
    assert complete.solver.steps == recipe.steps
    assert f"42 training rows: the mean of {recipe.members} models of width 7" in note
    assert "at most 9 epochs" in note
    assert complete.complete(config.load_data())[0] == complete


def test_images_keep_the_standard_values(cases):
    config = cases["preset"].base
    complete, notes = config.complete(config.load_data())
    assert (complete.loop.epochs, complete.loop.batch_size, complete.loop.patience) == (20, 64, None)
    assert (complete.optimizer.learning_rate, complete.optimizer.schedule) == (5e-3, "cosine")
    assert (complete.members, complete.width, notes) == (None, None, ())
    with pytest.raises(ValueError, match="--members 2 is for tables"):
        replace(config, members=2).build_task(config.load_data().spec)
