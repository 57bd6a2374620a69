"""What is built from a `ClassificationConfig`, field by field; and a model that comes back from its files."""

import itertools
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.data import Split, Standardizer
from charax.models import METHOD_NAMES, ImageArchitecture, Preset, find_design
from charax.nn import count_parameters
from charax.tasks.classification import ClassificationConfig, ClassificationSpec, ClassificationTask
from charax.train import from_json, load_model, save_config, save_model, to_json
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
    table = ClassificationConfig(data=str(folder / "table.csv"), method="c-node")
    pictures = ClassificationConfig(data=str(folder / "images.npz"))
    ambiguous = ClassificationConfig(data=str(folder / "both.csv"), target="b;target", separator=",")
    return {
        **shared_cases(table),
        "data": Case(table, {"data": str(folder / "other.csv")}, "data"),
        "target": Case(table, {"target": "color"}, "spec"),
        "separator": Case(ambiguous, {"separator": ";", "target": "target"}, "spec"),
        "shrink": Case(pictures, {"shrink": 2}, "data"),
        "max_samples": Case(table, {"max_samples": 30}, "data"),
        "method": Case(table, {"method": "node"}, "model"),
        "preset": Case(pictures, {"preset": "dense"}, "model"),
        "width": Case(table, {"width": 5}, "model"),
        "augment_dim": Case(
            ClassificationConfig(data=table.data, method="anode"), {"augment_dim": 3}, "model"
        ),
        "characteristic_dim": Case(table, {"characteristic_dim": 3}, "model"),
        "jacobian": Case(table, {"jacobian": "joint"}, "model"),
    }  # fmt: skip


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
