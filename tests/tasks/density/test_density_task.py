"""What is built from a `DensityConfig`, field by field; and the loss: penalties, traces, mirrored images."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.data import Standardizer
from charax.models.flows import PAPER_FLOW_SOLVER, AbstractFlow, FlowResult, ImageFlowDesign, paper_flow_design
from charax.solve import Solver
from charax.tasks.density import DensityBatch, DensityConfig, DensitySpec, DensityTask
from charax.train import LoopConfig, SolverConfig
from tests.tasks.fields import Case, changed_parts, fields_of, shared_cases


@pytest.fixture(scope="module")
def cases(blob, tmp_path_factory) -> dict[str, Case]:
    folder = tmp_path_factory.mktemp("data")
    (folder / "decimal.csv").write_text("\n".join(["a;b", *(f"{i},5;{i % 7},25" for i in range(60))]))
    images = np.random.default_rng(0).integers(0, 256, (40, 8, 8), dtype=np.uint8)
    np.savez(folder / "images.npz", x=images)
    loop = LoopConfig(epochs=2, batch_size=16)
    table, toy = DensityConfig(data=str(blob), loop=loop), DensityConfig(data="circles", points=50, loop=loop)
    pictures = DensityConfig(data=str(folder / "images.npz"), loop=loop)
    matched = dataclasses.replace(table, objective="matching")
    semicolons = DensityConfig(data=str(folder / "decimal.csv"), separator=";", loop=loop)
    return {
        **shared_cases(table),
        "data": Case(toy, {"data": "moons"}, "data"),
        "separator": Case(semicolons, {"separator": ","}, "refused"),
        "method": Case(table, {"method": "node"}, "model"),
        "preset": Case(toy, {"preset": "paper"}, "model"),
        "width": Case(table, {"width": 5}, "model"),
        "characteristic_dim": Case(table, {"characteristic_dim": 3}, "model"),
        "blocks": Case(pictures, {"blocks": 2}, "model"),
        "end_time": Case(table, {"end_time": 2.0}, "task"),
        "sharpness": Case(table, {"sharpness": 8.0}, "task"),
        "frequencies": Case(table, {"frequencies": 3}, "model"),
        "frequency_scale": Case(dataclasses.replace(table, frequencies=3), {"frequency_scale": 9.0}, "task"),
        "context": Case(table, {"context": ("a",)}, "data"),
        "objective": Case(table, {"objective": "matching"}, "task"),
        "source": Case(dataclasses.replace(toy, objective="matching"), {"source": "moons"}, "data"),
        "path": Case(matched, {"path": "cosine"}, "task"),
        "coupling": Case(matched, {"coupling": "independent"}, "task"),
        "times": Case(matched, {"times": "uniform"}, "task"),
        "pixels": Case(dataclasses.replace(pictures, objective="matching"), {"pixels": "logit"}, "spec"),
        "passes": Case(table, {"passes": 2}, "task"),
        "conditional": Case(table, {"conditional": True}, "model"),
        "hidden_classes": Case(dataclasses.replace(table, conditional=True), {"hidden_classes": 0.2}, "task"),
        "trace": Case(table, {"trace": "hutch++"}, "task"),
        "probes": Case(pictures, {"probes": 2}, "task"),
        "evaluated": Case(pictures, {"evaluated": 2}, "data"),
        "kinetic_penalty": Case(table, {"kinetic_penalty": 0.1}, "task"),
        "jacobian_penalty": Case(table, {"jacobian_penalty": 0.1}, "task"),
        "points": Case(toy, {"points": 60}, "data"),
        "shrink": Case(pictures, {"shrink": 2}, "data"),
    }


@pytest.mark.parametrize("field", fields_of(DensityConfig))
def test_every_field_changes_what_it_is_for(cases, field):
    assert cases[field].part in changed_parts(cases[field])


def test_classes_are_not_hidden_next_to_columns_of_context(cases):
    """Both are joined, and guidance would be away from the mean of the columns, too."""
    config = dataclasses.replace(cases["hidden_classes"].base, hidden_classes=0.2, context=("a",))
    with pytest.raises(ValueError, match="leave one of them out"):
        config.load_data()


SPEC = DensitySpec((2,), None, Standardizer((0.0,), (1.0,)))
CONFIG = DensityConfig(width=4, characteristic_dim=2, solver=SolverConfig(solver="euler", steps=2))
BATCH = DensityBatch(np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32), np.zeros(8, np.int32))


def losses(keys=(0,), **change):
    """The loss of one untrained flow and its metrics, for each key."""
    task = dataclasses.replace(CONFIG, **change).build_task(SPEC)
    model = task.build(jax.random.key(0))
    loss = jax.jit(lambda key: task.loss(model, BATCH, key))
    return [loss(jax.random.key(key)) for key in keys]


def test_penalties_are_added_with_their_weights():
    (plain, none), (value, metrics) = *losses(), *losses(kinetic_penalty=3.0, jacobian_penalty=0.5)
    kinetic, jacobian = float(metrics["kinetic"]), float(metrics["jacobian"])
    assert min(kinetic, jacobian) > 0
    assert float(metrics["nll"]) == pytest.approx(float(plain), rel=1e-5)
    assert float(value) == pytest.approx(float(plain) + 3.0 * kinetic + 0.5 * jacobian, rel=1e-5)
    assert "kinetic" not in none


@pytest.mark.parametrize(("trace", "is_random"), [("exact", False), ("hutchinson", True), ("gaussian", True)])
def test_the_trace_is_computed_as_it_is_called(trace, is_random):
    (first, _), (second, _) = losses(keys=(0, 1), trace=trace)
    assert (float(first) != float(second)) == is_random


def test_evaluation_is_exact_however_a_small_flow_was_trained():
    values = []
    for trace in ("exact", "hutchinson"):
        task = dataclasses.replace(CONFIG, trace=trace).build_task(SPEC)
        model = task.build(jax.random.key(0))
        values.append(jax.jit(lambda batch: task.metrics(model, batch)["nll"])(BATCH))  # noqa: B023
    np.testing.assert_array_equal(*values)


class Leftmost(AbstractFlow):
    """A flow whose log-density is the brightness of the leftmost column."""

    shape: tuple[int, ...] = eqx.field(static=True, default=(2, 2, 1))

    def evaluate(self, u, **_):
        zeros = jnp.zeros(len(u))
        return FlowResult(u, zeros, u[:, :, 0].sum(axis=(1, 2)), None, None, jnp.zeros(len(u), int), None)

    def match(self, u, matching, **_):
        return jnp.zeros(len(u))

    def loss(self, log_prob):
        return -log_prob

    def sample(self, n, **_):
        return jnp.zeros((n, *self.shape))

    @property
    def noise_shape(self):
        return self.shape

    def generate(self, noise, **_):
        return noise


@pytest.mark.parametrize("flip", [False, True])
def test_training_images_are_mirrored_at_random_if_that_is_so(flip):
    spec = DensitySpec((2, 2, 1), 256, Standardizer((0.0,), (1.0,), 255.0), flip=flip)
    task = DensityTask(design=ImageFlowDesign("node"), solver=Solver("euler", steps=1), spec=spec)
    images = np.zeros((64, 2, 2, 1), np.float32)
    images[:, :, 0] = 1.0
    loss, _ = task.loss(Leftmost(), DensityBatch(images, np.zeros(64, np.int32)), jax.random.key(0))
    assert (0.3 < -loss / 2 < 0.7) if flip else -loss / 2 == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["node", "c-node"])
@pytest.mark.parametrize("dataset", ["mnist", "cifar10"])
def test_one_full_training_step_of_the_papers_flows(dataset, method):
    """On two random images, with the paper's layers, solver and adjoint."""
    shape = {"mnist": (28, 28, 1), "cifar10": (32, 32, 3)}[dataset]
    task = DensityTask(
        design=paper_flow_design(dataset, method),
        solver=PAPER_FLOW_SOLVER,
        spec=DensitySpec(shape, 256, Standardizer((0.0,), (1.0,), 255.0)),
        trace="hutchinson",
    )
    images = np.random.default_rng(0).integers(0, 256, size=(2, *shape)).astype(np.float32)
    model = task.build(jax.random.key(0))
    loss = lambda model: task.loss(model, DensityBatch(images, np.zeros(2, np.int32)), jax.random.key(1))
    (value, metrics), gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss, has_aux=True))(model)
    assert np.isfinite(value)
    assert metrics["failed"] == 0
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
