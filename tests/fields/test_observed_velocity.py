"""The equation along an observed path, alone or with learned directions, and its gradients."""

import functools

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import (
    CharacteristicField,
    Condition,
    JoinedVelocity,
    JointJacobian,
    NetworkVelocity,
    ObservedPath,
    ObservedVelocity,
)
from charax.nn import mlp
from charax.solve import Solver

pytestmark = pytest.mark.usefixtures("x64")

NAN = np.nan
STATE = 3

# The knots lie on twelfths of the span, so that steps can end there.
TIMES = np.array([[0, 2, 3, 6, 11, 12.0], [1, 2, 4, 7, NAN, -5], [3, 4, 4.5, 5.5, 6, 8.0]])
LENGTHS = np.array([6, 4, 5])
VALUES = np.array(
    [
        [[0.3, NAN], [1.0, NAN], [NAN, 0.8], [-0.5, 1.0], [0.2, NAN], [0.4, -0.7]],
        [[NAN, 0.5], [0.7, 0.1], [-0.2, -0.9], [0.6, NAN], [9.0, NAN], [NAN, 7.0]],
        [[0.9, -0.4], [NAN, NAN], [0.1, 0.6], [0.8, 0.2], [-0.3, 0.5], [5.0, 5.0]],
    ]
)
COMPLETE = np.random.default_rng(0).normal(size=VALUES.shape)


def jacobian_of(channels: int, *, reads_x: bool = False, state: int = STATE) -> JointJacobian:
    with jax.enable_x64(True):
        body_key, key = jax.random.split(jax.random.key(7))
        body = mlp([state + reads_x * channels, 6], final="tanh", key=body_key)
        return JointJacobian(body, hidden=6, channels=state, characteristic_dim=channels, reads_x=reads_x, key=key)


def field_of(channels: int, **options) -> CharacteristicField:
    return CharacteristicField(ObservedVelocity(channels), jacobian_of(channels, **options))


def start_of(batch: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(1).normal(size=(batch, STATE)))


def test_a_solution_is_that_of_diffrax_with_a_control():
    times = jnp.asarray(TIMES[0])
    data = jnp.concatenate([times[:, None], jnp.asarray(COMPLETE[0])], axis=1)
    control = dfx.CubicInterpolation(times, dfx.backward_hermite_coefficients(times, data))
    field, u0 = field_of(3), start_of(1)
    term = dfx.ControlTerm(lambda t, u, args: field.jacobian(None, u[None])[0].T, control)
    theirs = dfx.diffeqsolve(term, dfx.Midpoint(), 0.0, 12.0, 12 / 2400, u0[0], max_steps=2400)
    path = ObservedPath.interpolate(TIMES[:1], COMPLETE[:1])
    ours = Solver("bosh3", steps=480, adjoint="direct").solve(field, u0, context=path.context())
    np.testing.assert_allclose(ours.u, theirs.ys, atol=1e-5)
    assert int(ours.stats.nfe) == 3 * 480
    assert np.abs(ours.u - u0).max() > 0.1


def test_samples_of_different_lengths_are_solved_as_if_alone():
    field, u0 = field_of(3), start_of(3)
    solver = Solver("midpoint", steps=24)
    together = solver.solve(field, u0, context=ObservedPath.interpolate(TIMES, VALUES, LENGTHS).context()).u
    for i, length in enumerate(LENGTHS[:2]):
        alone = ObservedPath.interpolate(TIMES[i : i + 1, :length], VALUES[i : i + 1, :length])
        solution = solver.solve(field, u0[i : i + 1], context=alone.context())
        np.testing.assert_allclose(together[i], solution.u[0], atol=1e-12)


def test_aligned_steps_end_at_the_kinks_of_every_path_and_reach_diffrax():
    """diffrax clips its steps to the jumps of one path; here three paths with different knots share their steps."""
    field, u0, sample = field_of(3), start_of(3), 1
    path = ObservedPath.interpolate(TIMES, COMPLETE, LENGTHS, interpolation="linear", aligned=True)
    ours = Solver("bosh3", steps=16 * path.num_pieces, adjoint="direct").solve(field, u0, context=path.context())
    times = jnp.asarray(TIMES[sample, : LENGTHS[sample]])
    values = jnp.asarray(COMPLETE[sample, : LENGTHS[sample]])
    control = dfx.LinearInterpolation(times, jnp.concatenate([times[:, None], values], axis=1))
    term = dfx.ControlTerm(lambda t, u, args: field.jacobian(None, u[None])[0].T, control).to_ode()
    controller = dfx.ClipStepSizeController(dfx.PIDController(1e-8, 1e-8), jump_ts=times)
    theirs = dfx.diffeqsolve(
        term, dfx.Bosh3(), times[0], times[-1], None, u0[sample], stepsize_controller=controller, max_steps=4096
    )
    np.testing.assert_allclose(ours.u[sample], theirs.ys[0], atol=1e-5)


def test_a_learned_velocity_per_time_does_not_depend_on_how_s_runs_and_stops_with_the_path():
    learned = NetworkVelocity(mlp([STATE, 4, 2], key=jax.random.key(0)), 2, reads=("u",))
    field = CharacteristicField(JoinedVelocity([ObservedVelocity(3), learned], per_time=True), jacobian_of(5))
    u0, solver = start_of(3), Solver("bosh3", steps=120, adjoint="direct")
    ends = [
        solver.solve(field, u0, context=ObservedPath.interpolate(TIMES, VALUES, LENGTHS, aligned=it).context()).u
        for it in (False, True)
    ]
    np.testing.assert_allclose(*ends, atol=1e-4)
    with pytest.raises(ValueError, match="per_time needs an observed velocity"):
        JoinedVelocity([learned], per_time=True)


def test_what_reads_x_sees_the_path_and_samples_may_have_their_own_adaptive_steps():
    path = ObservedPath.interpolate(TIMES, VALUES, LENGTHS)
    solver = Solver("bosh3", rtol=1e-7, atol=1e-7, per_sample=True)
    solution = solver.solve(field_of(3, reads_x=True), start_of(3), context=path.context(), x0=path.start)
    np.testing.assert_allclose(solution.x, path(1.0), atol=1e-4)
    assert len(set(solution.stats.nfe.tolist())) > 1


def hybrid(covariates: int, reads: tuple[str, ...]) -> JoinedVelocity:
    inputs = sum({"u": STATE, "context": covariates, "s": 1}[read] for read in reads)
    learned = NetworkVelocity(mlp([inputs, 4, 2], key=jax.random.key(0)), 2, reads=reads)
    return JoinedVelocity([ObservedVelocity(3, covariates=covariates), learned])


def test_joined_velocities_are_side_by_side_and_covariates_reach_the_learned_one():
    velocity = hybrid(4, ("u", "context"))
    path = ObservedPath.interpolate(TIMES, VALUES, LENGTHS)
    u, covariates = start_of(3), jnp.asarray(np.random.default_rng(3).normal(size=(3, 4)))
    out = eqx.filter_jit(velocity)(0.3, None, u, Condition(context=path.context(covariates)))
    assert velocity.characteristic_dim == 5
    assert velocity.reads == ("s", "u", "context")
    np.testing.assert_allclose(out[:, :3], path.derivative(0.3))
    np.testing.assert_allclose(out[:, 3:], velocity.velocities[1](0.3, None, u, Condition(context=covariates)))


@functools.cache
def differentiated(adjoint: str):
    """A loss and its gradient with respect to (field, u0, context)."""
    solver = Solver("bosh3", steps=24, adjoint=adjoint)

    def loss(moving):
        field, u0, context = moving
        u = solver.solve(field, u0, context=context).u
        return jnp.sum(jnp.sin(u) * jnp.arange(1, 1 + u.size).reshape(u.shape))

    return eqx.filter_jit(eqx.filter_value_and_grad(loss))


@jax.jit
def observe(times, values):
    return ObservedPath.interpolate(times, values, LENGTHS).context()


def hybrid_field() -> CharacteristicField:
    field = CharacteristicField(hybrid(0, ("s", "u")), jacobian_of(5))
    return eqx.tree_at(lambda it: (it.jacobian.weight, it.jacobian.bias), field, replace_fn=lambda leaf: 0.1 * leaf)


def test_the_three_adjoints_agree():
    """With respect to the observations, the initial state, the learned directions and the Jacobian."""
    field, u0 = hybrid_field(), start_of(3)
    context, to_observations = jax.vjp(observe, jnp.nan_to_num(TIMES), jnp.asarray(VALUES))

    def gradient(adjoint):
        _, (of_field, of_start, of_context) = differentiated(adjoint)((field, u0, context))
        # A knot at which a step ends has two derivatives: the times are left to the next test.
        return jax.tree.leaves((of_field, of_start, to_observations(of_context)[1]))

    exact = gradient("checkpoint")
    # The continuous adjoint is exact but for the error of the steps.
    for adjoint, tolerance in (("direct", 1e-10), ("backsolve", 5e-4)):
        for ours, theirs in zip(gradient(adjoint), exact, strict=True):
            assert np.abs(theirs).max() > 0
            np.testing.assert_allclose(ours, theirs, atol=tolerance * np.abs(theirs).max())


def test_gradients_agree_with_finite_differences():
    """With respect to the times and values of the observations and everything else; steps do not end at knots."""
    field, u0, h = hybrid_field(), start_of(3), 1e-4
    times = jnp.nan_to_num(TIMES) + 0.05 * np.sin(np.arange(6))
    context, to_observations = jax.vjp(observe, times, jnp.asarray(VALUES))
    _, (of_field, of_start, of_context) = differentiated("checkpoint")((field, u0, context))
    of_times, of_values = to_observations(of_context)
    point = {"times": times, "values": jnp.asarray(VALUES), "u0": u0, "weight": field.jacobian.weight}
    gradient = {"times": of_times, "values": of_values, "u0": of_start, "weight": of_field.jacobian.weight}

    def loss(times, values, u0, weight):
        changed = eqx.tree_at(lambda it: it.jacobian.weight, field, weight)
        return differentiated("checkpoint")((changed, u0, observe(times, values)))[0]

    for name, leaf in point.items():
        direction = np.random.default_rng(2).normal(size=leaf.shape)
        values = [loss(**point | {name: leaf + step * h * direction}) for step in (-2, -1, 1, 2)]
        difference = np.dot([1, -8, 8, -1], values) / (12 * h)
        np.testing.assert_allclose(np.sum(gradient[name] * direction), difference, rtol=1e-6, err_msg=name)
    padding = np.arange(6)[:, None] >= LENGTHS[:, None, None]
    assert (np.asarray(of_values)[np.isnan(VALUES) | padding] == 0).all()


def test_velocities_that_cannot_be_joined_are_refused():
    with pytest.raises(ValueError, match="no velocities"):
        JoinedVelocity([])
    with pytest.raises(ValueError, match="one observed path"):
        JoinedVelocity([ObservedVelocity(2), ObservedVelocity(2)])
    with pytest.raises(ValueError, match="covariates"):
        hybrid(0, ("u", "context"))
