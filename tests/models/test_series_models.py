"""Models of whole series: what they depend on, and what they do not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.series_epoch import step_memory
from charax.models import SeriesDesign
from charax.solve import Solver

NAN = np.nan
TIMES = np.array([[0, 0.2, 0.3, 0.9, 1.2], [0, 0.5, 0.6, 1.6, 2.6]], np.float32)
VALUES = np.random.default_rng(0).normal(size=(2, 5, 2)).astype(np.float32)
VALUES[0, 1, 0] = VALUES[1, 0, 1] = NAN
LENGTHS = np.array([5, 3])
METHODS = ("cde", "hybrid", "c-node", "node", "gru")


def build(method: str, **options):
    design = SeriesDesign(method, width=6, state_dim=4, characteristic_dim=2, count_scale=0.2, **options)
    return design.build(2, 3, key=jax.random.key(0))


@eqx.filter_jit
def apply(model, times, values, lengths, solver=None):
    return model(times, values, lengths, solver=solver)


@pytest.fixture(scope="module", params=METHODS)
def model(request):
    return build(request.param)


def test_the_outputs_do_not_depend_on_what_lies_behind_the_end(model):
    out = apply(model, TIMES, VALUES, LENGTHS)
    times, values = TIMES.copy(), VALUES.copy()
    times[1, 3:], values[1, 3:] = [7, 9], NAN
    np.testing.assert_allclose(apply(model, times, values, LENGTHS).values, out.values, atol=1e-6)
    assert out.values.shape == (2, 3)
    assert np.isfinite(out.values).all()


def test_only_the_node_ignores_what_comes_after_the_start(model, request):
    out, later = apply(model, TIMES, VALUES, LENGTHS), VALUES.copy()
    later[0, 3] += 1
    changed = np.abs(apply(model, TIMES, later, LENGTHS).values - out.values).max(axis=1)
    is_node = "node]" in request.node.name and "c-node]" not in request.node.name
    assert (changed[0] > 1e-5) is not is_node
    assert changed[1] < 1e-6


@pytest.mark.parametrize("method", ["hybrid", "gru"])
def test_every_value_and_time_has_a_finite_gradient(method):
    model = build(method)
    total = lambda values, times: apply(model, times, values, LENGTHS).values.sum()
    of_values, of_times = jax.grad(total, (0, 1))(jnp.asarray(VALUES), jnp.asarray(TIMES))
    assert np.isfinite(of_values).all()
    assert np.isfinite(of_times).all()


def test_the_numbers_of_evaluations():
    counts = {method: int(apply(build(method), TIMES, VALUES, LENGTHS).nfe) for method in METHODS}
    assert counts == {"cde": 8, "hybrid": 8, "c-node": 16, "node": 16, "gru": 5}


@pytest.mark.parametrize("method", ["cde", "gru"])
def test_a_causal_model_of_the_first_observations_is_that_of_a_shorter_file(method):
    model = build(method)
    short = apply(model, TIMES[:1, :3], VALUES[:1, :3], np.array([3])).values
    np.testing.assert_allclose(apply(model, TIMES[:1], VALUES[:1], np.array([3])).values, short, atol=1e-5)


def test_fixed_steps_between_observations_approach_adaptive_ones():
    model = build("hybrid")
    fine, adaptive = (
        apply(model, TIMES, VALUES, LENGTHS, solver)
        for solver in (Solver("bosh3", steps=16), Solver("bosh3", rtol=1e-5, atol=1e-5))
    )
    assert int(fine.nfe) == 3 * 16 * 4
    np.testing.assert_allclose(fine.values, adaptive.values, atol=2e-3)


def test_the_memory_of_a_gradient_does_not_grow_with_the_number_of_steps():
    few, many = (step_memory(steps, "backsolve", length=20) for steps in (1, 16))
    assert many < 1.1 * few
    few, many = (step_memory(steps, "checkpoint", length=20) for steps in (1, 16))
    assert many < 4 * few  # the default, whose gradients are exact, keeps the square root of the number of steps


def test_windows_take_their_number_of_steps_and_approach_the_path():
    times = jnp.linspace(0, 1, 120)[None]
    values = 0.5 * jnp.stack([jnp.cos(9 * times), jnp.sin(7 * times)], axis=2)
    plain, windows = build("cde"), build("cde", windows=20)
    out, reference = (apply(model, times, values, np.array([120])) for model in (windows, plain))
    assert (int(out.nfe), int(reference.nfe)) == (40, 238)
    np.testing.assert_allclose(out.values, reference.values, atol=5e-3)
    first = build("cde", windows=20, depth=1)
    assert first.ode.field.characteristic_dim < windows.ode.field.characteristic_dim


def test_the_count_of_parameters_is_that_of_the_model():
    design = SeriesDesign("gru", width=7)
    model = design.build(3, 2, key=jax.random.key(0))
    assert design.count(3, 2) == sum(leaf.size for leaf in jax.tree.leaves(model)) == 7 * 21 + 21 + 7 * 21 + 21 + 16


@pytest.mark.parametrize("method", ["cde", "hybrid"])
def test_a_jacobian_that_reads_the_path_sees_the_observed_values(method):
    model = build(method, reads_path=True, readout="mean")
    out = apply(model, TIMES, VALUES, LENGTHS)
    assert np.isfinite(out.values).all()
    jacobian = model.ode.field.jacobian.jacobian
    columns = [
        np.asarray(jacobian(jnp.full((1, jacobian.characteristic_dim), x), jnp.zeros((1, 4)))) for x in (0.0, 1.0)
    ]
    assert np.abs(columns[0] - columns[1]).max() > 1e-3


def test_the_mean_read_out_is_the_mean_of_the_state_over_time():
    model = build("cde", readout="mean")
    fine, knots = Solver("midpoint", steps=50), jnp.linspace(0, 1, 4 * 50 + 1)
    one = [jnp.asarray(array[:1]) for array in (TIMES, VALUES, LENGTHS)]
    solution = model.solve(*one, solver=fine, at=knots)
    assert solution.trajectory.shape[2] == 4
    u = np.asarray(solution.trajectory[:, 0])
    pieces = [np.trapezoid(u[50 * i : 50 * i + 51], axis=0) / 50 * (TIMES[0, i + 1] - TIMES[0, i]) for i in range(4)]
    np.testing.assert_allclose(solution.u[0, 4:], sum(pieces), rtol=1e-3, atol=1e-4)
    mean = sum(pieces) / 1.2
    expected = np.concatenate([u[-1], mean]) @ model.head.weight + model.head.bias
    np.testing.assert_allclose(apply(model, TIMES, VALUES, LENGTHS, fine).values[0], expected, rtol=1e-2, atol=1e-3)


def test_a_single_observation_has_its_own_state_as_the_mean():
    out = apply(build("cde", readout="mean"), TIMES, VALUES, np.array([1, 1]))
    assert np.isfinite(out.values).all()


def test_windows_and_a_path_that_is_read_go_together():
    out = apply(build("cde", reads_path=True, readout="mean", windows=3), TIMES, VALUES, LENGTHS)
    assert np.isfinite(out.values).all()


@pytest.mark.parametrize("method", ["cde", "hybrid", "gru"])
def test_a_start_from_a_summary_sees_the_series_before_it_is_read(method):
    options = {"summary_start": True, "readout": "last"}
    apart = np.abs(
        apply(build(method, **options), TIMES, VALUES, LENGTHS).values
        - apply(build(method, **options), TIMES, VALUES, np.array([5, 1])).values
    )
    assert apart[0].max() < 1e-6 < 1e-4 < apart[1].max()
    model = build(method, **options)
    inputs = model.start if method == "gru" else model.ode.lift.layer
    # The mean, deviation, change and share of each of two channels, and the duration.
    assert inputs.weight.shape[0] - (0 if method == "gru" else 5) == 4 * 2 + 1
    # What the series is like moves the first state, which a single observation ends with.
    still = [apply(model, TIMES, VALUES + shift, np.array([1, 1])).values for shift in (0.0, 0.5)]
    assert np.abs(still[0] - still[1]).max() > 1e-4


def test_a_gru_reads_its_mean_state_up_to_the_end_of_a_series():
    model = build("gru", readout="mean")
    short = apply(model, TIMES[:, :3], VALUES[:, :3], np.array([3, 3])).values
    np.testing.assert_allclose(apply(model, TIMES, VALUES, np.array([3, 3])).values, short, atol=1e-6)
    assert model.head.weight.shape[0] == 2 * model.hidden
