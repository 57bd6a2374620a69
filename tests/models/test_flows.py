"""Flows: exact densities, traces, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import CharacteristicField, Condition, NetworkVelocity, PlainField, SeparateJacobian
from charax.models.flows import (
    PAPER_FLOWS,
    ContinuousFlow,
    ExactTrace,
    Hutchinson,
    HutchPlusPlus,
    ImageFlowDesign,
    Pixels,
    VectorFlowDesign,
    paper_flow_design,
    plan_scales,
)
from charax.nn import mlp
from charax.solve import SolveError, Solver

TIGHT = Solver("dopri5", rtol=1e-8, atol=1e-8)


def log_dets(function, u):
    """log|det| of the autodiff Jacobian of a map of one sample, for a batch."""
    size = u[0].size
    jacobians = jax.vmap(jax.jacrev(lambda one: function(one[None])[0].reshape(-1)))(u).reshape(-1, size, size)
    return jnp.linalg.slogdet(jacobians)[1]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("method", "features"),
    [
        ("c-node", 2),
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in (("node", 2), ("node", 6), ("c-node", 6))),
    ],
)
def test_log_prob_is_the_base_density_plus_slogdet(method, features):
    design = VectorFlowDesign(method, width=8, characteristic_dim=3, end_time=2.0, scale=0.5, learn_time=True)
    flow = design.build((features,), key=jax.random.key(0))
    u = jax.random.normal(jax.random.key(1), (4, features))
    there = flow.forward(u, solver=TIGHT, with_energies=True)
    ends = lambda u: TIGHT.solve(flow.field, u, s1=flow.end_time).u  # the map alone, without its trace
    expected = flow.base_log_prob(there.u) + log_dets(ends, u)
    np.testing.assert_allclose(there.log_prob, expected, atol=1e-5)
    back = flow.inverse(there.u, solver=TIGHT, with_energies=True)
    np.testing.assert_allclose(back.u, u, atol=1e-6)
    np.testing.assert_allclose(back.log_det, -there.log_det, atol=1e-6)
    np.testing.assert_allclose(back.log_prob, there.log_prob, atol=1e-6)
    np.testing.assert_allclose(back.kinetic, there.kinetic, atol=1e-6)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("method", "shape"),
    [
        pytest.param("c-node", (4, 4, 1), marks=pytest.mark.slow),
        pytest.param("node", (4, 4, 3), marks=pytest.mark.slow),
        pytest.param("node", (8, 8, 1), marks=pytest.mark.slow),
        pytest.param("c-node", (8, 8, 1), marks=pytest.mark.slow),
        pytest.param("c-node", (8, 8, 3), marks=pytest.mark.slow),
    ],
)
def test_density_of_images_is_exact_through_all_scales(method, shape):
    flow = ImageFlowDesign(method, width=4, depth=2, levels=17, alpha=0.01).build(shape, key=jax.random.key(0))
    x = jax.random.uniform(jax.random.key(1), (2, *shape), minval=0.1, maxval=0.9)
    solver = Solver("tsit5", rtol=1e-7, atol=1e-7)
    there = jax.jit(lambda x: flow.forward(x, solver=solver, trace=ExactTrace()))(x)
    expected = log_dets(lambda x: flow.forward(x, solver=solver, trace=Hutchinson(), key=jax.random.key(0)).u, x)
    np.testing.assert_allclose(there.log_det, expected, atol=1e-5)
    back = jax.jit(lambda z: flow.inverse(z, solver=solver, trace=ExactTrace()))(there.u)
    np.testing.assert_allclose(back.u, x, atol=1e-5)
    np.testing.assert_allclose(back.log_det, -there.log_det, atol=1e-4)
    np.testing.assert_allclose(back.log_prob, there.log_prob, atol=1e-4)


@pytest.mark.slow
def test_inverse_of_forward_is_the_data_in_single_precision():
    flow = VectorFlowDesign("c-node", width=8, end_time=3.0).build((2,), key=jax.random.key(0))
    u = jax.random.normal(jax.random.key(1), (16, 2))
    there = flow.forward(u)
    np.testing.assert_allclose(flow.inverse(there.u).u, u, atol=1e-4)


def _linear(size: int, batch: int = 1):
    """A field with a known, unsymmetric Jacobian whose singular values fall off, as those of learned fields do."""
    left, right = (np.linalg.qr(np.random.default_rng(i).normal(size=(size, size)))[0] for i in (0, 1))
    matrix = jnp.asarray(left @ np.diag(0.5 ** np.arange(size)) @ right, jnp.float32) + 0.02 * jnp.eye(size)
    return (lambda u: u @ matrix.T), jnp.zeros((batch, size)), float(jnp.trace(matrix))


def _estimates(trace, number: int, size: int = 12):
    f, u, exact = _linear(size)
    one = lambda key: trace(f, u, trace.draw(key, u)).trace[0]
    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(3), number))), exact


@pytest.mark.parametrize("distribution", ["rademacher", "gaussian"])
def test_hutchinson_is_unbiased(distribution):
    estimates, exact = _estimates(Hutchinson(distribution=distribution), 4096)
    assert abs(estimates.mean() - exact) <= 4 * estimates.std() / np.sqrt(4096)
    assert estimates.std() > 0.01


def test_hutch_plus_plus_varies_less_than_hutchinson_for_as_many_products():
    plain, exact = _estimates(Hutchinson(probes=12), 512)
    better, _ = _estimates(HutchPlusPlus(products=12), 512)
    assert abs(better.mean() - exact) <= 4 * better.std() / np.sqrt(512)
    assert better.var() < 0.5 * plain.var()


@pytest.mark.slow
def test_estimated_frobenius_norms_agree_with_the_exact_one():
    f, u, _ = _linear(12)
    exact = float(ExactTrace()(f, u, None).squared_norm[0])
    for trace in (Hutchinson(probes=512), HutchPlusPlus(products=12)):
        many = [trace(f, u, trace.draw(key, u)).squared_norm[0] for key in jax.random.split(jax.random.key(0), 8)]
        assert abs(np.mean(many) - exact) < 0.1 * exact


@pytest.mark.parametrize(
    "trace",
    [Hutchinson(), pytest.param(HutchPlusPlus(products=3), marks=pytest.mark.slow)],
    ids=lambda trace: type(trace).__name__,
)
def test_a_trace_that_is_estimated_is_drawn_once_per_solve(trace):
    flow = VectorFlowDesign("node", width=4).build((3,), key=jax.random.key(0))
    u = jnp.ones((2, 3))
    result = flow.forward(u, trace=trace, key=jax.random.key(1))
    assert bool((result.log_det == flow.forward(u, trace=trace, key=jax.random.key(1)).log_det).all())
    assert int(result.nfe) == int(flow.forward(u).nfe)  # a new draw per evaluation would be rough


def test_the_error_of_the_density_chooses_the_steps_only_if_asked():
    spin = PlainField(lambda u: jnp.sin(20 * u[:, 1:]) * jnp.array([1.0, 0.0]) + 0 * u, reads=("u",))
    wiggle = PlainField(lambda h: 1e-4 * jnp.sin(200 * h[:, 1:]) + 0.1, reads=("s", "u"))
    flow, solver = ContinuousFlow(wiggle, (2,)), Solver(rtol=1e-4, atol=1e-4)
    u = jnp.ones((3, 2))
    alone = solver.solve(wiggle, u).stats.nfe
    assert int(flow.forward(u, solver=solver).nfe) == int(alone)
    assert int(flow.forward(u, solver=solver, control_density_error=True).nfe) > int(alone)
    assert ContinuousFlow(spin, (2,)).forward(u).log_det.max() == 0  # a shear keeps volumes


@pytest.mark.parametrize("method", ["node", "c-node"])
def test_every_class_has_a_density_of_its_own(method):
    flow = VectorFlowDesign(method, width=8, classes=3).build((2,), key=jax.random.key(0))
    solver, u, context = Solver("euler", steps=2), jnp.ones((3, 2)), jnp.eye(3)
    log_prob = flow.log_prob(u, solver=solver, context=context)
    assert len(set(log_prob.tolist())) == 3
    samples = flow.sample(3, key=jax.random.key(0), solver=solver, context=context)
    other = flow.sample(3, key=jax.random.key(0), solver=solver, context=context[::-1])
    assert samples[0].tolist() != other[0].tolist()
    assert samples[1].tolist() == other[1].tolist()


@pytest.mark.parametrize("use", ["log_prob", "evaluate", "sample"])
def test_context_is_neither_left_out_nor_ignored(use):
    def call(classes, context):
        flow = VectorFlowDesign("node", width=4, classes=classes).build((2,), key=jax.random.key(0))
        if use == "sample":
            return flow.sample(3, key=jax.random.key(0), context=context)
        return getattr(flow, use)(jnp.ones((3, 2)), context=context)

    with pytest.raises(ValueError, match="context"):
        call(3, None)
    with pytest.raises(ValueError, match="context"):
        call(0, jnp.eye(3))


@pytest.mark.slow
def test_gradient_of_every_parameter_is_finite_with_every_adjoint():
    flow = VectorFlowDesign("c-node", width=4, characteristic_dim=2, learn_time=True).build((2,), key=jax.random.key(0))
    u = jax.random.normal(jax.random.key(1), (4, 2))

    def loss(flow, adjoint):
        result = flow.evaluate(u, solver=Solver(rtol=1e-6, atol=1e-6, adjoint=adjoint), with_energies=True)
        return -result.log_prob.mean() + 0.1 * result.kinetic.mean() + 0.1 * result.jacobian_norm.mean()

    exact, other = (jax.tree.leaves(eqx.filter_grad(loss)(flow, adjoint)) for adjoint in ("checkpoint", "backsolve"))
    assert all(np.abs(leaf).max() > 0 for leaf in exact)
    for a, b in zip(exact, other, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-3)


# ---- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [2, 17, 256])
def test_uniform_noise_costs_the_logarithm_of_its_levels(levels):
    """bits/dim of images that are uniform over their levels under the uniform density is log2(levels)."""
    pixels = Pixels(levels)
    assert np.isclose(float(pixels.bits_per_dim(jnp.zeros(1), 64)[0]), np.log2(levels))


def test_logit_has_the_log_determinant_of_its_derivative(x64):
    pixels = Pixels(256, alpha=0.05)
    x = jnp.linspace(0.0, 1.0, 16).reshape(1, 4, 4, 1)
    derivative = jax.vmap(jax.grad(lambda one: pixels.logit(one.reshape(1, 1, 1, 1))[0].sum()))(x.reshape(-1))
    np.testing.assert_allclose(pixels.logit(x)[1][0], jnp.log(derivative).sum(), rtol=1e-10)


@pytest.mark.parametrize(("side", "scales"), [(4, 1), (8, 2), (14, 2), (28, 3), (32, 4)])
def test_scales_are_those_of_ffjord(side, scales):
    assert len(plan_scales((side, side, 3))) == scales


@pytest.mark.parametrize(
    ("dataset", "shape"), [("mnist", (28, 28, 1)), ("cifar10", (32, 32, 3)), ("svhn", (32, 32, 3))]
)
@pytest.mark.parametrize("method", ["node", "c-node"])
def test_flows_of_the_paper_have_its_number_of_parameters(dataset, shape, method):
    parameters = paper_flow_design(dataset, method).count(shape)
    assert abs(parameters / PAPER_FLOWS[dataset][method].parameters - 1) < 0.02


# ---- bad input ------------------------------------------------------------------------------------


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
        (lambda: plan_scales((27, 27, 1)), "27x27 pixels cannot be squeezed"),
        (lambda: plan_scales((28,)), "height, width, channels"),
        (lambda: VectorFlowDesign("anode").build((2,), key=jax.random.key(0)), "choose node or c-node"),
        (lambda: VectorFlowDesign("node", sharpness=0.0).build((2,), key=jax.random.key(0)), "sharpness must be"),
        (lambda: Hutchinson(probes=0), "at least 1"),
        (lambda: HutchPlusPlus(products=4), "3, 6, 9"),
        (lambda: HutchPlusPlus(products=9).draw(jax.random.key(0), jnp.ones((1, 4))), "use ExactTrace"),
        (lambda: Pixels(1), "at least 2 grey levels"),
        (lambda: Pixels(17).dequantise(jnp.full((1, 4, 4, 1), 17.0), key=jax.random.key(0)), "from 0 to 16"),
        (lambda: _tiny().log_prob(jnp.ones(2)), "a batch of them"),
        (lambda: _tiny().log_prob(jnp.ones((1, 2)), trace=Hutchinson()), "pass key="),
        (lambda: _tiny().log_prob(jnp.full((1, 2), jnp.nan)), "not finite in sample 0"),
        (lambda: _tiny().sample(0, key=jax.random.key(0)), "at least 1"),
        (lambda: ContinuousFlow(_tiny().field, (2,), end_time=0.0), "end_time must be"),
    ],
)
def test_bad_input_is_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def _tiny() -> ContinuousFlow:
    return VectorFlowDesign("node", width=4).build((2,), key=jax.random.key(0))


@pytest.mark.parametrize("method", ["node", "c-node"])
def test_a_sharper_field_has_larger_weights_before_its_activations_and_starts_slower(method):
    usual, sharp = (
        VectorFlowDesign(method, width=8, sharpness=w).build((2,), key=jax.random.key(0)) for w in (1.0, 3.0)
    )

    def before_activations(flow):
        field = flow.field
        networks = [field.network] if method == "node" else [field.velocity.network, field.jacobian.body]
        layers = [layer for network in networks for layer in (network.layers[0], network.layers[2])]
        return [array for layer in layers for array in (layer.weight, layer.bias)]

    usual = eqx.tree_at(before_activations, usual, replace_fn=lambda array: 3 * array)
    u = jax.random.normal(jax.random.key(1), (5, 2))
    speed, usual_speed = (flow.field(0.3, None, u, Condition())[1] for flow in (sharp, usual))
    np.testing.assert_allclose(3 * speed, usual_speed, rtol=1e-5)


def test_sharp_flows_of_several_seeds_share_what_was_compiled():
    first, second = (
        VectorFlowDesign("node", width=4, sharpness=3.0).build((2,), key=jax.random.key(i)) for i in (0, 1)
    )
    assert jax.tree.structure(first) == jax.tree.structure(second)


def test_failed_samples_are_counted_and_none_is_returned():
    blow_up = PlainField(lambda u: -jnp.where(u > 1.5, u**3, 0.0), reads=("u",))  # backwards, large u run off
    flow, key = ContinuousFlow(blow_up, (1,)), jax.random.key(0)
    far = int((jax.random.normal(key, (50, 1)) > 1.5).sum())
    assert 0 < far < 50
    with pytest.raises(SolveError, match=f"failed for {far} of 50 samples.*none is returned"):
        flow.sample(50, key=key)
    assert flow.sample(50, key=key, temperature=0.1).shape == (50, 1)
