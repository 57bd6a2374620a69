from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest
from scipy.optimize import brentq

from charax.pde import (
    PROBLEMS,
    Advection,
    Burgers,
    FootPointError,
    MultivaluedError,
    PlaneBurgers,
    Problem,
    Sine,
    solve,
)
from charax.solve import Solver

POINTS = 100
UNTIL = {
    "burgers-ramp": 0.95,
    "burgers-sine": 0.95,
    "burgers-gaussian": 1.5,
    "burgers-wave": 0.95,
    "burgers-tracer": 1.5,
    "traffic": 1.2,
}


def scattered(problem, until=1.0, points=POINTS):
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, (points, problem.dim))
    return jnp.asarray(x), jnp.asarray(random.uniform(0, until, points))


def padded(x, t):
    """The given points and others at the origin: tests with equally many points share a compiled program."""
    filled = np.zeros((POINTS, 2))
    filled[: len(x)] = np.stack([x, t], axis=1)
    return jnp.asarray(filled[:, :1]), jnp.asarray(filled[:, 1])


# Always tested; each takes seconds to compile.
QUICK = {"burgers-sine"}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PROBLEMS]
)
def test_solution_agrees_with_the_closed_form_before_the_crossing(name):
    problem = PROBLEMS[name]()
    x, t = scattered(problem, UNTIL.get(name, 1.0))
    np.testing.assert_allclose(solve(problem, x, t), problem.exact(x, t), atol=1e-8)


@pytest.mark.parametrize(
    "name",
    ["burgers-sine", "rotation", "paper"],
)
@pytest.mark.slow
def test_gradients_reach_parameters_points_and_times(name):
    problem = PROBLEMS[name]()
    x, t = scattered(problem, 0.8)
    loss = lambda function: lambda args: jnp.sum(jnp.sin(3 * function(*args)))
    found = eqx.filter_grad(loss(solve))((problem, x, t))
    known = eqx.filter_grad(loss(lambda problem, x, t: problem.exact(x, t)))((problem, x, t))
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(known), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-7)
    assert float(jnp.abs(jax.tree.leaves(found)[0])) > 1e-3


@pytest.mark.slow
def test_forward_mode_agrees_with_reverse_mode_under_jit():
    x, t = scattered(Advection())
    make = lambda speed: jnp.sum(solve(Advection(speed=speed), x, t) ** 2)
    speed = jnp.array([0.7])
    forward, reverse = jax.jit(jax.jacfwd(make))(speed), jax.jit(jax.grad(make))(speed)
    np.testing.assert_allclose(forward, reverse, rtol=1e-9)


def branches_of_sine(x, t):
    feet = np.linspace(-10, 10, 20001)
    residual = lambda foot: foot + t * np.sin(foot) - x
    values = residual(feet)
    roots = [brentq(residual, feet[i], feet[i + 1], xtol=1e-14) for i in np.flatnonzero(values[1:] * values[:-1] < 0)]
    return np.sin(np.array(roots, float))


def test_multivalued_points_raise_with_their_number_and_the_time_of_the_crossing():
    x, t = padded([0.5, 3.0, 3.2], [1.5, 1.5, 1.5])
    with pytest.raises(
        MultivaluedError, match=rf"2 of {POINTS} points.*point 1 at x=\(3\).*t=1\b.*allow_multivalued"
    ) as caught:
        solve(PROBLEMS["burgers-sine"](), x, t)
    assert abs(caught.value.shock_time - 1) < 1e-3
    assert np.flatnonzero(caught.value.affected).tolist() == [1, 2]


@pytest.mark.slow
def test_all_branches_are_returned_and_marked():
    burgers = PROBLEMS["burgers-sine"]()
    x, t = jnp.array([[0.5], [3.0], [np.pi], [-3.1], [np.pi]]), jnp.array([1.5, 1.5, 1.001, 3.0, 0.5])
    out = solve(burgers, x, t, allow_multivalued=True)
    assert out.count.tolist() == [1, 3, 3, 3, 1]
    for i in range(5):
        expected = branches_of_sine(float(x[i, 0]), float(t[i]))
        np.testing.assert_allclose(out.u[i, : len(expected)], expected, atol=1e-7)
        assert bool(jnp.isnan(out.u[i, len(expected) :]).all())


@pytest.mark.slow
def test_points_outside_of_the_fold_keep_their_single_value_after_the_crossing():
    x, t = jnp.array([[0.5], [-1.0], [2.0]]), jnp.full(3, 1.2)
    expected = [branches_of_sine(float(position), 1.2)[0] for position in x[:, 0]]
    np.testing.assert_allclose(solve(PROBLEMS["burgers-sine"](), x, t), expected, atol=1e-8)


@pytest.mark.slow
def test_fold_that_is_much_narrower_than_the_cells_of_the_table_is_detected():
    """At t = 1 + 1e-4 the three foot points of x = π lie within 0.05, in neighbouring cells of the table."""
    with pytest.raises(MultivaluedError, match="1 of 1 points"):
        solve(PROBLEMS["burgers-sine"](), jnp.array([[np.pi]]), jnp.array([1.0001]))


@pytest.mark.slow
def test_under_jit_multivalued_and_unreachable_points_are_nan():
    x, t = jnp.array([[0.5], [3.0], [3.2], [100.0]]), jnp.array([1.5, 1.5, 0.5, 0.5])
    u = jax.jit(lambda x, t: solve(PROBLEMS["burgers-sine"](), x, t))(x, t)
    assert jnp.isnan(u).tolist() == [False, True, False, True]


@pytest.mark.slow
def test_in_the_plane_every_point_after_the_first_crossing_is_refused():
    collapse = PlaneBurgers(matrix=((-1.0, 0.0), (0.0, 0.2)))  # everything meets on the y-axis at t = 1
    x = jnp.array([[0.1, 0.1], [0.1, 0.1]])
    assert solve(collapse, x, jnp.array([0.5, 0.9])).shape == (2, 2)
    with pytest.raises(MultivaluedError, match="1 of 2 points may be reached") as caught:
        solve(collapse, x, jnp.array([0.5, 1.5]))
    assert abs(caught.value.shock_time - 1) < 1e-3
    with pytest.raises(ValueError, match="on a line only"):
        solve(collapse, x, jnp.array([0.5, 1.5]), allow_multivalued=True)


@pytest.mark.slow
def test_many_points_in_chunks_have_the_same_values_as_all_at_once(monkeypatch):
    from charax.pde import _points as points

    problem = Advection(speed=[0.3])
    x, t = scattered(problem, points=23)
    whole = solve(problem, x, t)
    monkeypatch.setattr(points, "_CHUNK", 10)
    eqx.clear_caches()
    np.testing.assert_allclose(solve(problem, x, t), whole, atol=1e-12)
    eqx.clear_caches()


@pytest.mark.slow
def test_float32_points_give_float32_values():
    problem = PROBLEMS["burgers-sine"]()
    x, t = (array.astype(jnp.float32) for array in scattered(problem, 0.5))
    u = solve(problem, x, t)
    assert u.dtype == jnp.float32
    np.testing.assert_allclose(u, problem.exact(x, t), atol=1e-4)


BAD_INPUT = {
    "negative time": (jnp.zeros((2, 1)), np.array([0.5, -0.1]), r"point 1 at x=\(0\), t=-0.1 lies before"),
    "not a number": (np.array([[0.0], [np.nan]]), np.zeros(2), r"point 1 at x=\(nan\).*not finite"),
    "infinite time": (np.zeros((2, 1)), np.array([np.inf, 0.0]), "point 0.*not finite"),
    "flat x": (np.zeros(3), np.zeros(3), r"write x\[:, None\]"),
    "too many dimensions": (np.zeros((3, 2)), np.zeros(3), r"x must be \[points, 1\]"),
    "times of other points": (np.zeros((3, 1)), np.zeros(2), "one time for each of the 3 points"),
    "no points": (np.zeros((0, 1)), np.zeros(0), "no points"),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_points_are_named(name):
    x, t, message = BAD_INPUT[name]
    with pytest.raises(ValueError, match=message):
        solve(Advection(), jnp.asarray(x), jnp.asarray(t))


class NeverConverges(optx.AbstractRootFinder):
    rtol: float = 0.0
    atol: float = 0.0
    norm: Callable = optx.max_norm

    def init(self, fn, y, args, options, f_struct, aux_struct, tags):
        return jnp.array(False)

    def step(self, fn, y, args, options, state, tags):
        return y, state, None

    def terminate(self, fn, y, args, options, state, tags):
        return state, optx.RESULTS.successful

    def postprocess(self, fn, y, aux, args, options, state, tags, result):
        return y, aux, {}


def test_root_finder_that_fails_is_reported_with_its_point():
    burgers, x, t = PROBLEMS["burgers-sine"](), jnp.array([[1.0]]), jnp.array([0.5])
    exact = Solver("euler", steps=1)  # for straight characteristics; the fastest to compile
    with pytest.raises(FootPointError, match=r"point 0 at x=\(1\), t=0.5 .*root finder could converge"):
        solve(burgers, x, t, root_finder=NeverConverges(), solver=exact)


def test_point_that_no_characteristic_reaches_is_reported():
    with pytest.raises(FootPointError, match=r"point 1 at x=\(50\), t=0 is reached by no .*widen"):
        solve(PROBLEMS["burgers-sine"](), *padded([0.0, 50.0], [0.0, 0.0]))


@pytest.mark.slow
def test_points_on_the_edge_of_the_domain_belong_to_it():
    problem = PROBLEMS["paper"]()
    edges = jnp.array([[-10.0], [10.0]])
    np.testing.assert_allclose(solve(problem, edges, jnp.zeros(2)), problem.initial(edges), atol=1e-8)


@pytest.mark.slow
def test_value_that_diverges_is_reported():
    explosive = Problem(
        velocity=lambda x, t, u: jnp.ones_like(x),
        source=lambda x, t, u: u**2,
        initial=lambda x: 1 + 0 * x[:, 0],
        domain=(-5, 5),
    )
    with pytest.raises(FootPointError, match="point 1"):
        solve(explosive, jnp.zeros((2, 1)), jnp.array([0.5, 2.0]))


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"velocity": lambda x, t, u: u}, r"velocity\(x, t, u\) must return"),
        ({"source": lambda x, t, u: x}, r"source\(x, t, u\) must return"),
        ({"initial": lambda x: jnp.sum(x)}, r"initial\(x\) must return"),
    ],
)
def test_functions_of_the_wrong_shape_are_named(functions, message):
    right = {"velocity": lambda x, t, u: jnp.ones_like(x), "initial": lambda x: x[:, 0]}
    with pytest.raises(ValueError, match=message):
        solve(Problem(**(right | functions), domain=(-1, 1)), jnp.zeros((2, 1)), jnp.zeros(2))


@pytest.mark.parametrize("domain", [(1.0, 0.0), (0.0, np.inf), (1.0,), ((0.0, 1.0, 2.0),)])
def test_invalid_domains_are_refused(domain):
    with pytest.raises(ValueError, match="domain must"):
        Burgers(profile=Sine(), domain=domain)


def test_problem_without_closed_form_raises():
    with pytest.raises(ValueError, match="no closed form"):
        Problem(lambda x, t, u: x, lambda x: x[:, 0], domain=(-1, 1)).exact(jnp.zeros((1, 1)), jnp.zeros(1))


@pytest.mark.slow
def test_looser_solver_is_less_accurate():
    problem = PROBLEMS["paper"]()
    x, t = scattered(problem)
    error = jnp.abs(solve(problem, x, t, solver=Solver("bosh3", rtol=1e-3, atol=1e-3)) - problem.exact(x, t)).max()
    assert 1e-7 < error < 1e-2
