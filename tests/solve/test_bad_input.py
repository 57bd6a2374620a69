"""Bad input raises an error that names the argument and the fix."""

import jax
import jax.numpy as jnp
import pytest

from charax.fields import CharacteristicField, FunctionJacobian, NetworkVelocity, PlainField
from charax.solve import SolveError, Solver
from charax.solve._checks import check_arguments

DECAY = PlainField(lambda u: -u, reads=("u",))
U0 = jnp.ones((3, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "rk45"}, "unknown method 'rk45'.*choose from euler"),
        ({"method": "dopri"}, "did you mean 'dopri"),
        ({"rtol": 0.0}, "rtol must be a number above 0"),
        ({"atol": -1e-3}, "atol must be a number above 0"),
        ({"rtol": float("nan")}, "rtol must be a number above 0"),
        ({"method": "euler"}, "no error estimate.*steps="),
        ({"steps": 0}, "steps must be at least 1"),
        ({"max_steps": 0}, "max_steps must be at least 1"),
        ({"adjoint": "magic"}, "choose from checkpoint, backsolve, direct"),
    ],
)
def test_options(options, message):
    with pytest.raises(ValueError, match=message):
        Solver(**options)


@pytest.mark.parametrize(
    ("u0", "arguments", "message"),
    [
        (U0, {"s0": 1.0, "s1": 1.0}, "s1 equals s0"),
        (U0, {"s1": float("inf")}, "s0 and s1 must be finite"),
        (U0.at[1, 0].set(jnp.nan), {}, "u0 is not finite in sample 1"),
        (jnp.ones((0, 2)), {}, "empty batch"),
        (U0, {"at": jnp.array([0.5, 0.2])}, "at must be sorted"),
        (U0, {"at": jnp.array([0.5, 1.2])}, "at must lie between"),
        (U0, {"at": jnp.zeros(0)}, "at is empty"),
        (U0, {"x0": jnp.zeros((3, 1))}, "no characteristic"),
        (U0, {"context": jnp.full((3, 1), jnp.inf)}, "context is not finite in sample 0"),
        (U0, {"context": jnp.ones((3, 1))}, 'no part of this field reads it.*"context" in reads.*or leave context out'),
        (U0, {"conditioned_on": U0}, 'no part of this field reads u0.*"u0" in reads.*or leave conditioned_on out'),
    ],
)
def test_arguments(u0, arguments, message):
    with pytest.raises(ValueError, match=message):
        Solver().solve(DECAY, u0, **arguments)


def test_a_field_that_returns_another_shape():
    with pytest.raises(ValueError, match="du/ds must have the shape of u"):
        Solver().solve(PlainField(lambda u: u[:, :1], reads=("u",)), U0)


def test_a_context_that_is_missing():
    with pytest.raises(ValueError, match="pass context="):
        Solver().solve(PlainField(lambda h: h, reads=("context",)), U0)


def test_a_position_of_the_wrong_dimension():
    field = CharacteristicField(
        NetworkVelocity(lambda u: u, 2, reads=("u",)), FunctionJacobian(lambda x, u: jnp.stack([u, u], 1), 2)
    )
    with pytest.raises(ValueError, match="x0 must have the field's 2 characteristic dimensions"):
        Solver().solve(field, U0, x0=jnp.zeros((3, 3)))


def failure(function, solver, **arguments) -> str:
    with pytest.raises(SolveError) as caught:
        solver.solve(PlainField(function, reads=("s", "u")), jnp.linspace(-1, 1, 4)[:, None], **arguments)
    return str(caught.value)


class TestRunningOutOfSteps:
    """The exception distinguishes stiffness, tolerance, divergence and a low limit."""

    @pytest.mark.parametrize("method", ["dopri5", "bosh3", "tsit5"])
    def test_stiffness(self, method):
        message = failure(lambda h: -1e4 * (h[:, 1:] - jnp.cos(h[:, :1])), Solver(method, max_steps=300))
        assert "max_steps=300" in message
        assert "Stiffness is the likely cause" in message
        assert "Kvaerno5" in message

    def test_limit(self):
        message = failure(lambda h: 30 * jnp.cos(300 * h[:, :1]) * h[:, 1:], Solver(max_steps=60))
        assert "The limit is likely too low" in message
        assert "Raise max_steps" in message

    def test_tolerance_for_the_length(self):
        message = failure(lambda h: 3 * jnp.cos(h[:, :1]) * h[:, 1:], Solver(max_steps=60), s1=300.0)
        assert "The tolerance is the likely cause" in message
        assert "dopri8" in message

    def test_tolerance_below_the_precision(self):
        message = failure(
            lambda h: 30 * jnp.cos(300 * h[:, :1]) * h[:, 1:], Solver(rtol=1e-12, atol=1e-12, max_steps=100)
        )
        assert "below what float32 resolves" in message

    def test_blow_up(self):
        message = failure(lambda h: h[:, 1:] ** 2 + 1, Solver(max_steps=60), s1=5.0)
        assert "likely to diverge" in message

    def test_per_sample_names_the_sample(self):
        message = failure(
            lambda h: -1e4 * (h[:, 1:] - jnp.cos(h[:, :1])) * (h[:, 1:] > -0.5),
            Solver(max_steps=300, per_sample=True),
        )
        assert "3 of 4 samples (the first is number 1)" in message


def test_a_field_that_is_not_finite_stops_the_solve_and_the_message_has_the_position():
    message = failure(lambda h: jnp.sqrt(0.5 - h[:, :1]) * h[:, 1:], Solver())
    assert "became too small at 50.0% of the interval" in message


def test_fixed_steps_that_overflow():
    message = failure(lambda h: h[:, 1:] ** 3 * 1e30, Solver("euler", steps=5))
    assert "u is not finite at s1" in message


@pytest.mark.parametrize(
    ("u0", "conditioned_on", "context", "message"),
    [
        (jnp.ones((3, 2), int), None, None, "u0 must be floating point"),
        (jnp.array(1.0), None, None, "u0 must be a batch"),
        (U0, jnp.zeros((3, 5)), None, "conditioned_on must have the shape of u0"),
        (U0, None, jnp.zeros((2, 1)), "context has 2 samples where u0 has 3"),
    ],
)
def test_shapes_that_the_annotations_of_our_tests_would_catch_first(u0, conditioned_on, context, message):
    with pytest.raises(ValueError, match=message):
        check_arguments(DECAY, u0, None, 0.0, 1.0, None, conditioned_on, context)


def test_a_failed_backward_solve_is_an_error_and_not_a_wrong_gradient():
    # Stable forwards, violently unstable backwards.
    field = PlainField(lambda u: -50 * u * (1 + u**2), reads=("u",))
    solver = Solver(adjoint="backsolve", max_steps=200)
    with pytest.raises(jax.errors.JaxRuntimeError, match="maximum number of solver steps"):
        jax.block_until_ready(jax.jit(jax.grad(lambda u: solver.solve(field, u).u.sum()))(jnp.array([[3.0]])))
