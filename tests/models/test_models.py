"""Lifts, the eight methods, and the paper's classifiers."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import CharacteristicField, PlainField, SecondOrderField
from charax.models import (
    METHOD_NAMES,
    PAPER_DATASETS,
    Identity,
    InputLayer,
    NeuralODE,
    PositionVelocity,
    ZeroAugment,
    count_table,
    neural_ode,
    paper_architecture,
    paper_classifier,
    paper_solver,
    parse_method,
)
from charax.nn import Linear, count_parameters
from charax.solve import Solver

KEY = jax.random.key(0)
SHAPES = {"mnist": (28, 28, 1), "cifar10": (32, 32, 3), "svhn": (32, 32, 3)}


def test_lifts_make_the_states_they_are_named_for():
    data = jax.random.normal(KEY, (2, 4, 4, 3))
    np.testing.assert_array_equal(Identity()(data), data)
    augmented = ZeroAugment(5)(data)
    np.testing.assert_array_equal(augmented[..., :3], data)
    assert augmented.shape == (2, 4, 4, 8)
    assert not augmented[..., 3:].any()
    layer = Linear(3, 6, key=KEY)
    np.testing.assert_array_equal(InputLayer(layer)(data), layer(data))
    state = PositionVelocity(InputLayer(layer))(data)
    np.testing.assert_array_equal(state[..., :6], layer(data))
    assert not state[..., 6:].any()
    assert PositionVelocity(InputLayer(layer), layer)(data)[..., 6:].any()


def test_impossible_lifts_are_refused():
    with pytest.raises(ValueError, match="use Identity"):
        ZeroAugment(0)
    with pytest.raises(ValueError, match="the position's shape"):
        PositionVelocity(Identity(), Linear(3, 4, key=KEY))(jnp.ones((2, 3)))


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_a_method_is_its_lift_and_its_field(method):
    model = eqx.filter_eval_shape(neural_ode, method, 2, augment_dim=3, key=KEY)
    parts = parse_method(method)
    lifts = {"node": Identity, "anode": ZeroAugment, "il-node": InputLayer, "2nd-order": PositionVelocity}
    assert isinstance(model.lift, lifts[parts.lift])
    field = model.field.acceleration if isinstance(model.field, SecondOrderField) else model.field
    assert isinstance(model.field, SecondOrderField) == (parts.lift == "2nd-order")
    assert isinstance(field, CharacteristicField if parts.characteristic else PlainField)
    data = jax.ShapeDtypeStruct((4, 2), jnp.float32)
    solution = eqx.filter_eval_shape(lambda model, data: model(data, solver=Solver("heun", steps=2)), model, data)
    assert solution.u.shape == (4, {"node": 2, "anode": 5, "il-node": 5, "2nd-order": 10}[parts.lift])


@pytest.mark.usefixtures("x64")
def test_second_order_really_is_second_order():
    # u″ = −u from (u, v) = (1, 0) is the cosine.
    model = NeuralODE(
        SecondOrderField(PlainField(lambda state: -state[:, :1], reads=("u",))), PositionVelocity(Identity())
    )
    end = model(jnp.ones((1, 1)), solver=Solver("dopri8", rtol=1e-10, atol=1e-10)).u
    np.testing.assert_allclose(end, [[np.cos(1), -np.sin(1)]], atol=1e-8)


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match="2nd-order"):
        parse_method("resnet")
    with pytest.raises(ValueError, match="mnist, cifar10, svhn"):
        paper_classifier("imagenet", "node", key=KEY)


def test_twelve_counts_equal_the_papers_and_four_are_a_little_below():
    rows = count_table()
    assert [(row.dataset, row.method) for row in rows] == [(d, m) for d in ("mnist", "cifar10") for m in METHOD_NAMES]
    for row in rows:
        if row.method.startswith("2nd-order"):
            assert 0.97 * row.parameters_paper <= row.parameters < row.parameters_paper
        else:
            assert row.parameters == row.parameters_paper


def shapes(dataset, method, solver):
    """The logits of two images, and the solution behind them, as shapes."""
    images = jax.ShapeDtypeStruct((2, *SHAPES[dataset]), jnp.float32)
    model = lambda images: paper_classifier(dataset, method, key=KEY)(images, solver=solver)
    return eqx.filter_eval_shape(model, images)


@pytest.mark.parametrize("dataset", PAPER_DATASETS)
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_every_paper_classifier_gives_logits_for_its_images(dataset, method):
    assert shapes(dataset, method, Solver("euler", steps=1))[0].shape == (2, 10)


@pytest.mark.parametrize("dataset", PAPER_DATASETS)
def test_paper_classifiers_take_the_papers_solver(dataset):
    solvers = {method: paper_solver(dataset, method) for method in METHOD_NAMES}
    assert {(solver.method, solver.adjoint, solver.steps) for solver in solvers.values()} == {
        ("dopri5", "backsolve", None)
    }
    logits, solution = shapes(dataset, "c-node", solvers["c-node"])
    assert logits.shape == (2, 10)
    assert solution.stats.nfe.shape == ()


@pytest.mark.parametrize("dataset", ["mnist", "cifar10"])
def test_component_sizes_are_the_papers(dataset):
    sizes = {
        "mnist": {"c-node": 37_121, "il-node+c-node": 39_701},
        "cifar10": {"c-node": 34_329, "anode+c-node": 33_726},
    }
    for method, size in sizes[dataset].items():
        model = eqx.filter_eval_shape(paper_classifier, dataset, method, key=KEY)
        assert {count_parameters(network) for network in model.ode.field.jacobian.networks} == {size}


def test_every_parameter_of_a_classifier_is_used():
    # The published IL+C model calls one Jacobian network twice and leaves the other one dead.
    architecture = replace(paper_architecture("mnist", "il-node+c-node"), width=4, pool=2)
    images = np.random.default_rng(0).uniform(size=(2, 4, 4, 1)).astype(np.float32)

    model = architecture.build((4, 4, 1), 10, key=KEY)

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model):
        return jnp.sum(model(jnp.asarray(images), solver=Solver("euler", steps=1))[0] ** 2)

    assert [leaf.shape for leaf in jax.tree.leaves(gradient(model)) if not np.any(leaf)] == []
    first, second = model.ode.field.jacobian.networks
    assert np.any(np.asarray(first.layers[1].weight) != np.asarray(second.layers[1].weight))


def test_the_image_model_reads_the_raw_image_and_not_the_lifted_one():
    model = eqx.filter_eval_shape(paper_classifier, "mnist", "il-node+c-node", key=KEY)
    assert model.ode.field.velocity.reads == ("s", "context")
