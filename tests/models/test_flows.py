"""Flows of vectors: exact densities, classes, samples, and what is refused."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import CharacteristicField, Condition, NetworkVelocity, PlainField, SeparateJacobian
from charax.models.flows import ContinuousFlow, Hutchinson, VectorFlowDesign
from charax.nn import mlp
from charax.solve import SolveError, Solver

COARSE = Solver("euler", steps=2)
ONES = jnp.asarray(np.ones((3, 2), np.float32))
CLASSES = jnp.asarray(np.eye(3, dtype=np.float32))


@functools.cache
def build(method: str, features: int = 2, **sizes) -> ContinuousFlow:
    return VectorFlowDesign(method, width=4, characteristic_dim=2, **sizes).build((features,), key=jax.random.key(0))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("features", [2, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", ["c-node", pytest.param("node", marks=pytest.mark.slow)])
def test_log_prob_is_the_base_density_plus_slogdet(method, features):
    design = VectorFlowDesign(method, width=8, characteristic_dim=3, end_time=2.0, scale=0.5, learn_time=True)
    flow = design.build((features,), key=jax.random.key(0))
    # Fixed steps compile faster than adaptive ones, and so many of them are as accurate.
    solver, plain = Solver("bosh3", steps=200), Solver("bosh3", steps=200, adjoint="direct")

    @jax.jit
    def everything(u):
        there = flow.forward(u, solver=solver, with_energies=True)
        end = lambda one: plain.solve(flow.field, one[None], s1=flow.end_time).u[0]  # the map alone, without its trace
        expected = flow.base_log_prob(there.u) + jnp.linalg.slogdet(jax.vmap(jax.jacfwd(end))(u))[1]
        return there, expected, flow.inverse(there.u, solver=solver, with_energies=True)

    u = jnp.asarray(np.random.default_rng(1).normal(size=(4, features)))
    there, expected, back = everything(u)
    np.testing.assert_allclose(there.log_prob, expected, atol=1e-5)
    np.testing.assert_allclose(back.u, u, atol=1e-6)
    np.testing.assert_allclose(back.log_det, -there.log_det, atol=1e-6)
    np.testing.assert_allclose(back.log_prob, there.log_prob, atol=1e-6)
    np.testing.assert_allclose(back.kinetic, there.kinetic, atol=1e-6)
    np.testing.assert_allclose(back.jacobian_norm, there.jacobian_norm, atol=1e-6)
    assert (np.asarray(there.kinetic) > 0).all()


@pytest.mark.slow
def test_inverse_of_forward_is_the_data_in_single_precision():
    flow = VectorFlowDesign("c-node", width=8, end_time=3.0).build((2,), key=jax.random.key(0))
    u = jax.random.normal(jax.random.key(1), (16, 2))
    there = flow.forward(u)
    np.testing.assert_allclose(flow.inverse(there.u).u, u, atol=1e-4)


def test_the_error_of_the_density_is_controlled_only_if_asked():
    wiggle = PlainField(lambda h: 1e-4 * jnp.sin(200 * h[:, 1:]) + 0.1, reads=("s", "u"))
    flow, solver = ContinuousFlow(wiggle, (2,)), Solver("bosh3", rtol=1e-4, atol=1e-4)

    @functools.partial(jax.jit, static_argnames="controlled")
    def nfe(key, controlled):
        how = {"solver": solver, "trace": Hutchinson(), "control_density_error": controlled, "key": key}
        return flow.forward(ONES, **how).nfe

    alone, key = int(solver.solve(wiggle, ONES).stats.nfe), jax.random.key(0)
    assert nfe(key, controlled=False) == alone
    assert nfe(key, controlled=True) > alone


def test_a_shear_keeps_volumes():
    shear = PlainField(lambda u: jnp.sin(20 * u[:, 1:]) * np.array([1.0, 0.0], np.float32) + 0 * u, reads=("u",))
    assert not ContinuousFlow(shear, (2,)).forward(ONES, solver=COARSE).log_det.any()


@pytest.mark.parametrize("method", ["node", "c-node"])
def test_every_class_has_a_density_of_its_own(method):
    flow = build(method, classes=3)
    log_prob = jax.jit(lambda context: flow.log_prob(ONES, solver=COARSE, context=context))(CLASSES)
    assert len(set(log_prob.tolist())) == 3
    samples, other = (
        flow.sample(3, key=jax.random.key(0), solver=COARSE, context=classes) for classes in (CLASSES, CLASSES[::-1])
    )
    assert samples[0].tolist() != other[0].tolist()
    assert samples[1].tolist() == other[1].tolist()


@pytest.mark.parametrize("use", ["log_prob", "evaluate", "sample"])
def test_context_is_neither_left_out_nor_ignored(use):
    def call(classes, context):
        flow = build("node", classes=classes)
        if use == "sample":
            return flow.sample(3, key=jax.random.key(0), context=context)
        return getattr(flow, use)(ONES, context=context)

    with pytest.raises(ValueError, match="context"):
        call(3, None)
    with pytest.raises(ValueError, match="context"):
        call(0, CLASSES)


@pytest.mark.slow
def test_gradient_of_every_parameter_is_finite_with_every_adjoint():
    flow = build("c-node", learn_time=True)
    u = jax.random.normal(jax.random.key(1), (4, 2))

    def loss(flow, adjoint):
        result = flow.evaluate(u, solver=Solver(rtol=1e-6, atol=1e-6, adjoint=adjoint), with_energies=True)
        return -result.log_prob.mean() + 0.1 * result.kinetic.mean() + 0.1 * result.jacobian_norm.mean()

    exact, other = (jax.tree.leaves(eqx.filter_grad(loss)(flow, adjoint)) for adjoint in ("checkpoint", "backsolve"))
    assert all(np.abs(leaf).max() > 0 for leaf in exact)
    for a, b in zip(exact, other, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-3)


def test_a_velocity_that_reads_u0_is_refused():
    field = CharacteristicField(
        NetworkVelocity(mlp([3, 4, 1], key=jax.random.key(0)), 1, reads=("s", "u0")),
        SeparateJacobian([mlp([2, 4, 2], key=jax.random.key(0))]),
    )
    with pytest.raises(ValueError, match="may not read u0"):
        ContinuousFlow(field, (2,))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: VectorFlowDesign("anode").build((2,), key=jax.random.key(0)), "choose node or c-node"),
        (lambda: VectorFlowDesign("node", sharpness=0.0).build((2,), key=jax.random.key(0)), "sharpness must be"),
        (lambda: VectorFlowDesign("node").build((2, 2), key=jax.random.key(0)), "rows of numbers"),
        (lambda: build("node").log_prob(ONES[0]), "a batch of them"),
        (lambda: build("node").log_prob(ONES, trace=Hutchinson()), "pass key="),
        (lambda: build("node").log_prob(ONES * jnp.nan), "not finite in sample 0"),
        (lambda: build("node").sample(0, key=jax.random.key(0)), "at least 1"),
        (lambda: build("node").sample(1, key=jax.random.key(0), temperature=0.0), "temperature must be"),
        (lambda: ContinuousFlow(build("node").field, (2,), end_time=0.0), "end_time must be"),
    ],
)
def test_bad_input_is_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("method", ["node", "c-node"])
def test_a_sharper_field_has_larger_weights_before_its_activations_and_is_smaller(method):
    usual, sharp = build(method), build(method, sharpness=3.0)

    def before_activations(flow):
        field = flow.field
        networks = [field.network] if method == "node" else [field.velocity.network, field.jacobian.body]
        layers = [layer for network in networks for layer in (network.layers[0], network.layers[2])]
        return [array for layer in layers for array in (layer.weight, layer.bias)]

    usual = eqx.tree_at(before_activations, usual, replace_fn=lambda array: 3 * np.asarray(array))
    derivative = eqx.filter_jit(lambda flow, u: flow.field(0.3, None, u, Condition())[1])
    u = jnp.asarray(np.random.default_rng(1).normal(size=(5, 2)), jnp.float32)
    np.testing.assert_allclose(3 * derivative(sharp, u), derivative(usual, u), rtol=1e-5)


def test_sharp_flows_of_several_seeds_share_what_was_compiled():
    first, second = (
        VectorFlowDesign("node", width=4, sharpness=3.0).build((2,), key=jax.random.key(i)) for i in (0, 1)
    )
    assert jax.tree.structure(first) == jax.tree.structure(second)


def test_failed_samples_are_counted_and_none_is_returned():
    blow_up = PlainField(lambda u: -jnp.where(u > 1.5, u**3, 0.0), reads=("u",))  # backwards, large u diverge
    flow, key, solver = ContinuousFlow(blow_up, (1,)), jax.random.key(0), Solver("bosh3", rtol=1e-3, atol=1e-3)
    far = int((np.asarray(jax.random.normal(key, (50, 1))) > 1.5).sum())
    assert 0 < far < 50
    with pytest.raises(SolveError, match=f"failed for {far} of 50 samples.*none is returned"):
        flow.sample(50, key=key, solver=solver)
    assert flow.sample(50, key=key, solver=solver, temperature=0.1).shape == (50, 1)


@pytest.mark.parametrize("method", ["node", "c-node"])
@pytest.mark.parametrize("activation", ["tanh", "silu", "softplus"])
def test_a_field_grows_at_most_linearly_so_that_solves_from_far_away_end(method, activation):
    flow = build(method, activation=activation, frequencies=2)
    speed = lambda u: float(jnp.linalg.norm(flow.field(jnp.zeros(()), None, u, Condition(u0=u))[1]))
    far, farther = speed(1e3 * ONES), speed(1e4 * ONES)
    assert farther < 20 * far  # 100 times as large if it were a product of two networks that grow
