"""Closed forms against their own equations, before anything is compared with them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import jv

from charax.pde import PROBLEMS, Burgers, Gaussian, PaperProblem, Ramp, Sine

QUICK = ("advection", "rotation", "burgers-sine", "paper", "paper-steep")
"""Problems that are always tested; the others are as well with the slow tests."""


def scattered(problem, seed=0, points=50, until=0.8):
    random = np.random.default_rng(seed)
    x = random.uniform(-2, 2, (points, problem.dim))
    return jnp.asarray(x), jnp.asarray(random.uniform(0, until, points))


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PROBLEMS]
)
def test_closed_form_solves_its_equation(name):
    problem = PROBLEMS[name]()

    @jax.jit
    def sides(x, t):
        """Of uₜ + a·∇u = c."""
        u = problem.exact(x, t)
        _, left = jax.jvp(problem.exact, (x, t), (problem.velocity(x, t, u), jnp.ones_like(t)))
        return left, problem.source(x, t, u)

    np.testing.assert_allclose(*sides(*scattered(problem)), atol=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_closed_form_starts_at_the_initial_value(name):
    problem = PROBLEMS[name]()
    both = jax.jit(lambda x, t: (problem.exact(x, t), problem.initial(x)))
    np.testing.assert_allclose(*both(*scattered(problem, until=0.0)), atol=1e-12)


def test_burgers_sine_agrees_with_its_fourier_series():
    x, t = scattered(PROBLEMS["burgers-sine"](), until=0.7)
    n, position, time = np.arange(1, 200)[:, None], np.asarray(x[:, 0]), np.asarray(t)
    series = -np.sum((-1.0) ** n * 2 * jv(n, n * time) / (n * time) * np.sin(n * position), axis=0)
    np.testing.assert_allclose(PROBLEMS["burgers-sine"]().exact(x, t), series, atol=1e-8)


def test_burgers_ramp_agrees_with_its_explicit_solution():
    x, t = scattered(PROBLEMS["burgers-ramp"]())
    explicit = np.clip((1 - x[:, 0]) / (1 - t), 0, 1)
    np.testing.assert_allclose(PROBLEMS["burgers-ramp"]().exact(x, t), explicit, atol=1e-13)


@pytest.mark.parametrize(("slope", "sign"), [(2 / 3, 1), (2.0, -1)])
def test_paper_problem_has_the_solution_of_its_slope(slope, sign):
    problem = PaperProblem(slope=slope)
    x, t = scattered(problem)
    np.testing.assert_allclose(problem.exact(x, t), 2 * x[:, 0] * np.exp(t) / (2 * np.exp(t) + sign), rtol=1e-13)


@pytest.mark.parametrize("problem", [lambda: Burgers(profile=Sine()), lambda: PaperProblem(slope=-2.0)])
def test_closed_form_is_nan_and_not_a_branch_after_the_crossing(problem):
    assert jnp.isnan(problem().exact(jnp.ones((1, 1)), jnp.array([1.5]))).all()


@jax.jit
def values_and_slopes(profile):
    """The smallest and largest of each on a grid, and the bounds that the profile claims."""
    x = jnp.linspace(-5, 5, 201)
    u, slope = profile(x), jax.vmap(jax.grad(profile))(x)
    return ((u.min(), u.max()), profile.bounds()), ((slope.min(), slope.max()), profile.slopes())


@settings(max_examples=15, deadline=None)
@given(size=st.floats(-3, 3), scale=st.floats(0.2, 3))
def test_profiles_keep_to_their_bounds_and_slopes(size, scale):
    for profile in (Gaussian(size, scale), Sine(size, scale), Ramp(size, scale)):
        for (smallest, largest), (lower, upper) in jax.device_get(values_and_slopes(profile)):
            assert lower - 1e-12 <= smallest
            assert largest <= upper + 1e-12
