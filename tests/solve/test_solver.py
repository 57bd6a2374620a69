"""The solver against closed forms, scipy and a callback that counts."""

from functools import cache
from typing import get_args

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from charax.fields import CharacteristicField, FunctionJacobian, FunctionVelocity, PlainField
from charax.solve import METHODS, Outcome, Solver, SolverName

ADAPTIVE = [name for name in METHODS if name != "euler"]
ADJOINTS = ["checkpoint", "backsolve", "direct"]


def pendulum(h):
    s, angle, speed = h[:, :1], h[:, 1:2], h[:, 2:]
    return jnp.concatenate([speed, -4 * jnp.sin(angle) + 0.3 * jnp.cos(3 * s)], axis=-1)


PENDULUM = PlainField(pendulum, reads=("s", "u"))
STARTS = ((0.5, 0.0), (1.5, -1.0), (-2.0, 0.3))


class Counter:
    """Counts the evaluations of its field. There is one for all tests, so that equal solves are compiled once."""

    def __init__(self, function):
        def counted(h):
            jax.debug.callback(self.bump)
            return function(h)

        self.field = PlainField(counted, reads=("s", "u"))
        self.count = 0

    def bump(self):
        self.count += 1

    def solve(self, solver: Solver, u0=STARTS, field=None, **arguments):
        """A solution, and the number of evaluations that it took."""
        self.count = 0
        solution = solver.solve(field or self.field, jnp.array(u0), **arguments)
        jax.effects_barrier()
        return solution, self.count


COUNTER = Counter(pendulum)


@pytest.fixture(scope="module")
def expected():
    """The end of the pendulum by scipy."""
    field = lambda s, y: np.array([y[1], -4 * np.sin(y[0]) + 0.3 * np.cos(3 * s)])
    return np.array([solve_ivp(field, (0, 1), y, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1] for y in STARTS])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("method", ADAPTIVE)
def test_solution_agrees_with_scipy_to_the_tolerance(method, expected):
    tolerance = 1e-6 if method in ("midpoint", "heun") else 1e-9
    solution, _ = COUNTER.solve(Solver(method, rtol=tolerance, atol=tolerance))
    np.testing.assert_allclose(solution.u, expected, atol=100 * tolerance)


GROWTH = PlainField(lambda u: u, reads=("u",)), 4.0, np.exp(4.0)
FORCED = PlainField(lambda h: jnp.cos(h[:, :1]) * h[:, 1:], reads=("s", "u")), 2.0, np.exp(np.sin(2.0))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("method", "order", "problem", "steps"),
    [
        ("euler", 1, FORCED, (16, 32)),
        ("midpoint", 2, FORCED, (16, 32)),
        ("heun", 2, FORCED, (16, 32)),
        ("bosh3", 3, FORCED, (16, 32)),
        ("tsit5", 5, GROWTH, (192, 384)),  # its leading error is so small that the order is visible only late
        ("dopri5", 5, FORCED, (16, 32)),
        ("dopri8", 8, FORCED, (4, 8)),
    ],
)
def test_error_falls_with_the_nominal_order(method, order, problem, steps):
    field, s1, exact = problem
    solvers = [Solver(method, steps=n, adjoint="direct") for n in steps]
    errors = [float(solver.solve(field, jnp.ones((1, 1)), s1=s1).u[0, 0]) - exact for solver in solvers]
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.2


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("adjoint", ADJOINTS)
@pytest.mark.parametrize(
    ("method", "steps"),
    [*((name, 7) for name in METHODS), *((name, None) for name in ADAPTIVE)],
    ids=lambda value: {7: "fixed", None: "adaptive"}.get(value, value),
)
def test_nfe_is_the_number_of_evaluations(method, steps, adjoint):
    # A low limit has fewer nested loops to compile.
    limit = {"max_steps": 256} if adjoint == "direct" else {}
    solver = Solver(method, adjoint=adjoint, steps=steps, rtol=1e-3, atol=1e-3, **limit)
    solution, evaluations = COUNTER.solve(solver)
    assert solution.stats.nfe == evaluations
    if steps is not None:
        assert solution.stats.accepted == 7


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("adjoint", ["checkpoint", "backsolve"])
def test_nfe_is_exact_if_the_first_step_is_rejected(adjoint):
    # Over an interval so long that the first attempts fail. An FSAL method of diffrax evaluates the first stage again.
    solution, evaluations = COUNTER.solve(Solver("dopri5", rtol=1e-3, atol=1e-3, adjoint=adjoint), s1=200.0)
    assert solution.stats.rejected > 0
    assert solution.stats.nfe == evaluations


AT = (0.0, 0.31, 0.5, 1.0)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("variant", ["backward", "at", "characteristic", "joint batch of one"])
def test_nfe_is_exact_in_every_other_mode(variant):
    arguments = {
        "backward": {"s0": 1.0, "s1": 0.3},
        "at": {"at": jnp.array(AT)},
        "characteristic": {"with_characteristic": True},
        "joint batch of one": {"u0": STARTS[:1]},
    }[variant]
    if variant == "characteristic":
        jacobian = FunctionJacobian(lambda x, u: COUNTER.field.network(jnp.pad(u, ((0, 0), (1, 0))))[:, None], 1)
        velocity = FunctionVelocity(lambda s, x, u, z: u[:, :1], 1, reads=("u",))
        arguments["field"] = CharacteristicField(velocity, jacobian)
    solution, evaluations = COUNTER.solve(Solver(rtol=1e-4, atol=1e-4), **arguments)
    assert solution.stats.nfe == evaluations


@pytest.mark.usefixtures("x64")
def test_per_sample_steps_and_counts_are_those_of_each_sample_alone():
    together = Solver(rtol=1e-4, atol=1e-4, per_sample=True).solve(PENDULUM, jnp.array(STARTS))
    assert together.outcome.shape == (3,)
    nfe = together.stats.nfe.tolist()
    for i, start in enumerate(STARTS):
        alone, evaluations = COUNTER.solve(Solver(rtol=1e-4, atol=1e-4), (start,))
        assert nfe[i] == evaluations
        np.testing.assert_allclose(together.u[i], alone.u[0], atol=1e-5)
    assert len(set(nfe)) > 1


UNIT_SPEED = PlainField(jnp.ones_like, reads="u")


@pytest.mark.parametrize("span", [-3.0, -0.1, 0.7, 3.0])
@pytest.mark.parametrize("steps", [1, 7, 1000])
def test_fixed_steps_are_as_many_as_requested_and_reach_the_end(steps, span):
    solution = Solver("euler", steps=steps).solve(UNIT_SPEED, jnp.zeros((1, 1)), s1=span)
    assert solution.stats.accepted == steps
    np.testing.assert_allclose(solution.u, [[span]], rtol=1e-4)


def test_integrating_backwards_returns_to_the_initial_state():
    solver = Solver(rtol=1e-6, atol=1e-6)
    end = solver.solve(PENDULUM, jnp.array(STARTS)).u
    np.testing.assert_allclose(solver.solve(PENDULUM, end, s0=1.0, s1=0.0).u, STARTS, atol=1e-4)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("adjoint", ADJOINTS)
def test_trajectory_passes_through_the_solutions_at_its_points(adjoint):
    limit = {"max_steps": 256} if adjoint == "direct" else {}
    solution, _ = COUNTER.solve(Solver(rtol=1e-9, atol=1e-9, adjoint=adjoint, **limit), at=jnp.array(AT))
    for s, u in zip(AT[1:], solution.trajectory[1:], strict=True):
        np.testing.assert_allclose(u, COUNTER.solve(Solver(rtol=1e-9, atol=1e-9), s1=s)[0].u, atol=1e-7)
    np.testing.assert_allclose(solution.trajectory[0], STARTS, atol=1e-12)
    np.testing.assert_allclose(solution.trajectory[-1], solution.u, rtol=1e-14)


class TestCharacteristic:
    """x(s) is integrated only if the field reads it, or on request."""

    @staticmethod
    @cache
    def field(*, reads_x: bool) -> CharacteristicField:
        # dx/ds = 2, du/ds = x or 1 times 2.
        velocity = FunctionVelocity(lambda s, x, u, z: jnp.full((u.shape[0], 1), 2.0), 1, reads=("u",))
        column = (lambda x, u: x[:, None]) if reads_x else (lambda x, u: jnp.ones_like(u)[:, None])
        return CharacteristicField(velocity, FunctionJacobian(column, 1, reads_x=reads_x))

    def test_is_absent_when_the_field_does_not_read_it(self):
        assert Solver().solve(self.field(reads_x=False), jnp.zeros((1, 1))).x is None

    def test_is_present_on_request_and_does_not_change_the_steps(self):
        plain = Solver().solve(self.field(reads_x=False), jnp.zeros((1, 1)))
        requested = Solver().solve(self.field(reads_x=False), jnp.zeros((1, 1)), with_characteristic=True)
        np.testing.assert_allclose(requested.x, [[2.0]], rtol=1e-5)
        assert requested.stats.nfe == plain.stats.nfe

    @pytest.mark.parametrize("per_sample", [False, True])
    def test_starts_at_x0_and_changes_the_state_in_the_same_layout_per_sample(self, per_sample):
        # x = x0 + 2s, so u(s) = u(0) + 2 x0 s + 2 s².
        x0, u0, at = np.array([[0.0], [3.0], [-1.0]]), np.array([[0.0], [1.0], [2.0]]), np.array([0.25, 0.5])
        x = lambda s: x0 + 2 * s
        u = lambda s: u0 + 2 * x0 * s + 2 * s**2
        u0, x0_given, at_given = (jnp.array(value, "float32") for value in (u0, x0, at))
        solver = Solver(per_sample=per_sample)
        solution = solver.solve(self.field(reads_x=True), u0, x0=x0_given, at=at_given)
        np.testing.assert_allclose(solution.u, u(1), rtol=1e-5)
        np.testing.assert_allclose(solution.x, x(1), rtol=1e-5)
        np.testing.assert_allclose(solution.trajectory, np.stack([u(s) for s in at]), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(solution.characteristic, np.stack([x(s) for s in at]), rtol=1e-5, atol=1e-6)


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


@pytest.mark.parametrize("options", [{}, {"steps": 3}, {"adjoint": "direct", "max_steps": 16}])
def test_a_compiled_solve_can_be_cached_because_it_has_no_callbacks(options):
    gradient = jax.grad(lambda u: Solver(**options).solve(PENDULUM, u).u.sum())
    assert "callback" not in str(jax.make_jaxpr(gradient)(jnp.array(STARTS)))


def test_any_diffrax_solver_can_be_used():
    stiff = PlainField(lambda h: -1e4 * (h[:, 1:] - jnp.cos(h[:, :1])), reads=("s", "u"))
    solution = Solver(dfx.Kvaerno3(), rtol=1e-3, atol=1e-3, max_steps=256).solve(stiff, jnp.zeros((2, 1)))
    np.testing.assert_allclose(solution.u, np.cos(1.0), atol=1e-3)
    assert solution.stats.nfe is None  # it iterates
    explicit = Solver(dfx.Ralston(), rtol=1e-4, atol=1e-4).solve(PENDULUM, jnp.array(STARTS))
    assert explicit.stats.nfe == 2 + 2 * (explicit.stats.accepted + explicit.stats.rejected)


def test_under_jit_a_failure_is_an_outcome_and_the_value_is_nan():
    blow_up = PlainField(lambda u: u**2 + 1, reads=("u",))
    solution = eqx.filter_jit(lambda u: Solver().solve(blow_up, u, s1=5.0))(jnp.zeros((1, 1)))
    assert solution.outcome == Outcome.STEP_VANISHED
    assert jnp.isnan(solution.u).all()


DECAY = PlainField(lambda u: -u, reads=("u",))


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (2, 1, 3), (1, 4, 2, 3)])
def test_any_state_shape_keeps_its_shape_and_its_dtype(shape):
    u0 = jax.random.normal(jax.random.key(0), shape)
    solution = Solver("heun", steps=10).solve(DECAY, u0)
    assert solution.u.shape == u0.shape
    assert solution.u.dtype == u0.dtype
    np.testing.assert_allclose(solution.u, u0 * np.exp(-1), atol=5e-3)


def test_the_names_of_configs_are_those_of_the_methods():
    assert set(get_args(SolverName)) == set(METHODS)
