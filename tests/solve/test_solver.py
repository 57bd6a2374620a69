"""The solver against closed forms, scipy and a callback that counts."""

from typing import get_args

import diffrax as dfx
import equinox as eqx
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from charax.fields import (
    CharacteristicField,
    FunctionJacobian,
    FunctionVelocity,
    NetworkVelocity,
    PlainField,
    SeparateJacobian,
)
from charax.nn import mlp
from charax.solve import METHODS, Outcome, Solver, SolverName

ADAPTIVE = [name for name in METHODS if name != "euler"]
ADJOINTS = ["checkpoint", "backsolve", "direct"]


def pendulum(h):
    s, angle, speed = h[:, :1], h[:, 1:2], h[:, 2:]
    return jnp.concatenate([speed, -4 * jnp.sin(angle) + 0.3 * jnp.cos(3 * s)], axis=-1)


PENDULUM = PlainField(pendulum, reads=("s", "u"))
STARTS = ((0.5, 0.0), (1.5, -1.0), (-2.0, 0.3))


def pendulum_by_scipy(s1=1.0):
    field = lambda s, y: np.array([y[1], -4 * np.sin(y[0]) + 0.3 * np.cos(3 * s)])
    return np.array([solve_ivp(field, (0, s1), y, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1] for y in STARTS])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("method", ADAPTIVE)
def test_solution_agrees_with_scipy_to_the_tolerance(method):
    tolerance = 1e-6 if method in ("midpoint", "heun") else 1e-9
    solution = Solver(method, rtol=tolerance, atol=tolerance).solve(PENDULUM, jnp.array(STARTS))
    np.testing.assert_allclose(solution.u, pendulum_by_scipy(), atol=100 * tolerance)


GROWTH = PlainField(lambda u: u, reads=("u",)), 4.0, np.exp(4.0)
FORCED = PlainField(lambda h: jnp.cos(h[:, :1]) * h[:, 1:], reads=("s", "u")), 2.0, np.exp(np.sin(2.0))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("method", "order", "problem", "steps"),
    [
        ("euler", 1, FORCED, (400, 800)),
        ("midpoint", 2, FORCED, (100, 200)),
        ("heun", 2, FORCED, (100, 200)),
        ("bosh3", 3, FORCED, (64, 128)),
        ("tsit5", 5, GROWTH, (192, 384)),  # its leading error is so small that the order shows late
        ("dopri5", 5, FORCED, (32, 64)),
        ("dopri8", 8, FORCED, (4, 8)),
    ],
)
def test_error_falls_with_the_nominal_order(method, order, problem, steps):
    field, s1, exact = problem
    errors = [float(Solver(method, steps=n).solve(field, jnp.ones((1, 1)), s1=s1).u[0, 0]) - exact for n in steps]
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.2


class Counter:
    """A field that counts how often it is really evaluated."""

    def __init__(self):
        self.count = 0

    def bump(self):
        self.count += 1

    def field(self) -> PlainField:
        def right_hand_side(u):
            jax.debug.callback(self.bump)
            return 10 * jnp.sin(3 * u) - u

        return PlainField(right_hand_side, reads=("u",))

    def evaluations_of(self, solve):
        self.count = 0
        solution = solve()
        jax.effects_barrier()
        return solution, self.count


@pytest.mark.parametrize("adjoint", ADJOINTS)
@pytest.mark.parametrize(
    ("method", "settings"),
    [(name, {"steps": 7}) for name in METHODS] + [(name, {"rtol": 1e-4, "atol": 1e-4}) for name in ADAPTIVE],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else value,
)
def test_nfe_is_the_number_of_evaluations(method, settings, adjoint):
    counter = Counter()
    solver = Solver(method, adjoint=adjoint, **settings)
    solution, evaluations = counter.evaluations_of(
        lambda: solver.solve(counter.field(), jnp.array([[-1.0], [0.2], [0.9]]))
    )
    assert solution.stats.nfe == evaluations
    if "steps" in settings:
        assert solution.stats.accepted == 7


def test_nfe_counts_the_first_stage_again_when_the_first_step_is_rejected():
    # A field so fast that the first attempts fail: first-same-as-last methods start over.
    counter = Counter()

    def right_hand_side(u):
        jax.debug.callback(counter.bump)
        return -3000 * (u - 1)

    solution, evaluations = counter.evaluations_of(
        lambda: Solver("dopri5", rtol=1e-3, atol=1e-3).solve(
            PlainField(right_hand_side, reads=("u",)), jnp.zeros((1, 1)), s1=0.01
        )
    )
    assert solution.stats.rejected > 0
    assert solution.stats.nfe == evaluations


@pytest.mark.parametrize("variant", ["backward", "at", "characteristic", "joint batch of one"])
def test_nfe_is_exact_in_every_other_mode(variant):
    counter = Counter()
    u0 = jnp.array([[-1.0], [0.2], [0.9]])
    arguments = {
        "backward": {"s0": 1.0, "s1": 0.3},
        "at": {"at": jnp.linspace(0, 1, 9)},
        "characteristic": {"with_characteristic": True},
        "joint batch of one": {},
    }[variant]
    field = plain = counter.field()
    if variant == "characteristic":
        jacobian = FunctionJacobian(lambda x, u: plain.network(u)[:, None], 1)
        field = CharacteristicField(FunctionVelocity(lambda s, x, u, z: u, 1, reads=("u",)), jacobian)
    if variant == "joint batch of one":
        u0 = u0[:1]
    solution, evaluations = counter.evaluations_of(lambda: Solver(rtol=1e-4, atol=1e-4).solve(field, u0, **arguments))
    assert solution.stats.nfe == evaluations


def test_per_sample_steps_and_counts_are_those_of_each_sample_alone():
    u0 = jnp.array([[-1.0], [0.001], [0.9]])
    counter = Counter()
    field = counter.field()
    solver = Solver(rtol=1e-4, atol=1e-4, per_sample=True)
    together = solver.solve(field, u0)
    assert together.outcome.shape == (3,)
    for i in range(3):
        alone, evaluations = counter.evaluations_of(
            lambda i=i: Solver(rtol=1e-4, atol=1e-4).solve(field, u0[i : i + 1])
        )
        assert together.stats.nfe[i] == evaluations
        np.testing.assert_allclose(together.u[i], alone.u[0], atol=1e-5)
    assert len(set(together.stats.nfe.tolist())) > 1


def test_per_sample_layout_is_that_of_a_joint_solve():
    at = jnp.linspace(0, 1, 5)
    velocity = NetworkVelocity(mlp([3, 8, 2], key=jax.random.key(0)), 2, reads=("s", "u"))
    keys = jax.random.split(jax.random.key(1), 2)
    field = CharacteristicField(velocity, SeparateJacobian([mlp([2, 8, 2], key=key) for key in keys]))
    joint, single = (
        Solver(rtol=1e-6, atol=1e-6, per_sample=per_sample).solve(
            field, jnp.array(STARTS), at=at, with_characteristic=True
        )
        for per_sample in (False, True)
    )
    for name in ("u", "x", "trajectory", "characteristic"):
        np.testing.assert_allclose(getattr(joint, name), getattr(single, name), atol=1e-4)


@hypothesis.given(steps=st.integers(1, 1000), span=st.floats(-3, 3).filter(lambda s: abs(s) > 0.1))
@hypothesis.settings(max_examples=5)
def test_fixed_steps_are_as_many_as_asked_for_and_reach_the_end(steps, span):
    solution = Solver("euler", steps=steps).solve(PlainField(jnp.ones_like, reads="u"), jnp.zeros((1, 1)), s1=span)
    assert solution.stats.accepted == steps
    np.testing.assert_allclose(solution.u, [[span]], rtol=1e-4)


def test_walking_back_returns_to_the_start():
    solver = Solver(rtol=1e-6, atol=1e-6)
    there = solver.solve(PENDULUM, jnp.array(STARTS)).u
    np.testing.assert_allclose(solver.solve(PENDULUM, there, s0=1.0, s1=0.0).u, STARTS, atol=1e-4)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("adjoint", ADJOINTS)
def test_trajectory_passes_through_the_solutions_at_its_points(adjoint):
    at = jnp.array([0.0, 0.31, 0.5, 1.0])
    solver = Solver("dopri8", rtol=1e-9, atol=1e-9, adjoint=adjoint)
    solution = solver.solve(PENDULUM, jnp.array(STARTS), at=at)
    for s, u in zip(at[1:], solution.trajectory[1:], strict=True):
        np.testing.assert_allclose(u, solver.solve(PENDULUM, jnp.array(STARTS), s1=s).u, atol=1e-7)
    np.testing.assert_allclose(solution.trajectory[0], STARTS, atol=1e-12)
    np.testing.assert_allclose(solution.trajectory[-1], solution.u, rtol=1e-14)


class TestCharacteristic:
    """x(s) is integrated only if somebody reads it, and can be followed all the same."""

    @staticmethod
    def field(*, reads_x: bool) -> CharacteristicField:
        # dx/ds = 2, du/ds = x or 1 times 2.
        velocity = FunctionVelocity(lambda s, x, u, z: jnp.full((u.shape[0], 1), 2.0), 1, reads=("u",))
        column = (lambda x, u: x[:, None]) if reads_x else (lambda x, u: jnp.ones_like(u)[:, None])
        return CharacteristicField(velocity, FunctionJacobian(column, 1, reads_x=reads_x))

    def test_is_absent_when_nobody_reads_it(self):
        assert Solver().solve(self.field(reads_x=False), jnp.zeros((1, 1))).x is None

    def test_is_there_when_asked_for_and_leaves_the_steps_alone(self):
        plain = Solver().solve(self.field(reads_x=False), jnp.zeros((1, 1)))
        followed = Solver().solve(self.field(reads_x=False), jnp.zeros((1, 1)), with_characteristic=True)
        np.testing.assert_allclose(followed.x, [[2.0]], rtol=1e-5)
        assert followed.stats.nfe == plain.stats.nfe

    def test_starts_at_x0_and_enters_the_value(self):
        # x = x0 + 2s, so u(1) = ∫ 2 (x0 + 2s) ds = 2 x0 + 2.
        solution = Solver().solve(
            self.field(reads_x=True), jnp.zeros((2, 1)), x0=jnp.array([[0.0], [3.0]]), at=jnp.array([0.5])
        )
        np.testing.assert_allclose(solution.u, [[2.0], [8.0]], rtol=1e-5)
        np.testing.assert_allclose(solution.characteristic, [[[1.0], [4.0]]], rtol=1e-5)


class TestCompilation:
    """Changing a number does not compile again."""

    def setup_method(self):
        self.traces = 0

        def right_hand_side(u):
            self.traces += 1
            return -u

        self.field = PlainField(right_hand_side, reads=("u",))

    def test_of_a_solve_outside_of_jit(self):
        u0 = jnp.ones((2, 1))
        Solver(rtol=1e-3).solve(self.field, u0)
        traced = self.traces
        assert traced > 0
        Solver(rtol=1e-6).solve(self.field, u0)
        Solver(atol=1e-7).solve(self.field, u0, s0=0.5, s1=2.0)
        Solver().solve(self.field, 2 * u0, s1=-1)
        assert self.traces == traced
        Solver("tsit5").solve(self.field, u0)  # a new method is a new program
        assert self.traces > traced

    def test_of_a_jitted_function_that_is_given_the_solver(self):
        @eqx.filter_jit
        def end(solver, s1):
            return jax.grad(lambda u: solver.solve(self.field, u, s1=s1).u.sum())(jnp.ones((2, 1)))

        end(Solver(rtol=1e-3), jnp.array(1.0))
        traced = self.traces
        end(Solver(rtol=1e-5, atol=1e-6), jnp.array(2.0))
        assert self.traces == traced


@pytest.mark.parametrize("settings", [{}, {"steps": 3}, {"adjoint": "direct"}])
def test_a_compiled_solve_can_be_cached_because_it_calls_nothing_back(settings):
    gradient = jax.grad(lambda u: Solver(**settings).solve(PENDULUM, u).u.sum())
    assert "callback" not in str(jax.make_jaxpr(gradient)(jnp.array(STARTS)))


def test_any_diffrax_solver_can_be_handed_in():
    stiff = PlainField(lambda h: -1e4 * (h[:, 1:] - jnp.cos(h[:, :1])), reads=("s", "u"))
    solution = Solver(dfx.Kvaerno5(), rtol=1e-3, atol=1e-3).solve(stiff, jnp.zeros((2, 1)))
    np.testing.assert_allclose(solution.u, np.cos(1.0), atol=1e-3)
    assert solution.stats.nfe is None  # it iterates
    explicit = Solver(dfx.Ralston(), rtol=1e-4, atol=1e-4).solve(PENDULUM, jnp.array(STARTS))
    assert explicit.stats.nfe == 2 + 2 * (explicit.stats.accepted + explicit.stats.rejected)


def test_under_jit_a_failure_is_an_outcome_and_the_value_is_nan():
    blow_up = PlainField(lambda u: u**2 + 1, reads=("u",))
    solution = eqx.filter_jit(lambda u: Solver().solve(blow_up, u, s1=5.0))(jnp.zeros((1, 1)))
    assert solution.outcome == Outcome.STEP_VANISHED
    assert jnp.isnan(solution.u).all()


@hypothesis.given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3), batch=st.integers(1, 3), seed=st.integers(0, 9)
)
@hypothesis.settings(max_examples=5)
def test_any_state_shape_keeps_its_shape_and_its_dtype(shape, batch, seed):
    u0 = jax.random.normal(jax.random.key(seed), (batch, *shape))
    solution = Solver("heun", steps=10).solve(PlainField(lambda u: -u, reads=("u",)), u0)
    assert solution.u.shape == u0.shape
    assert solution.u.dtype == u0.dtype
    np.testing.assert_allclose(solution.u, u0 * np.exp(-1), atol=5e-3)


def test_the_names_of_configs_are_those_of_the_methods():
    assert set(get_args(SolverName)) == set(METHODS)
