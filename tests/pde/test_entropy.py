"""The entropy solution against closed forms, against a finite-volume method, and against itself."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from scipy.integrate import quad

from charax.pde import (
    AbstractProblem,
    FootPointError,
    MultivaluedError,
    PlaneBurgers,
    Problem,
    TracerBurgers,
    shocks,
    solve,
)
from charax.pde._entropy import check_after_shock
from charax.pde._entropy_action import least_action
from charax.pde._entropy_curve import trace_curve
from charax.pde._entropy_graph import initial_graph
from charax.pde._entropy_law import make_law
from charax.pde._entropy_tracking import TIMES, Tracker
from charax.pde._flow import prepare

POINTS = 512  # always as many, so that everything is compiled once
FLOAT64 = np.dtype("float64")


def parameter(default):
    return eqx.field(default=default, converter=lambda value: jnp.asarray(value, float))


class Law(AbstractProblem):
    """Every equation and initial value of this file as the parameters of one class: one compilation for all."""

    velocity_numerator: Float[Array, "3"] = parameter((0.0, 1.0, 0.0))
    velocity_denominator: Float[Array, "3"] = parameter((1.0, 0.0, 0.0))
    drift: Float[Array, ""] = parameter(0.0)
    decay: Float[Array, "2"] = parameter((0.0, 0.0))
    breaks: Float[Array, "3"] = parameter((0.0, 0.0, 0.0))
    values: Float[Array, "4"] = parameter((0.0, 0.0, 0.0, 0.0))
    """The initial value to the left of each break, and to the right of the last."""
    slopes: Float[Array, "4"] = parameter((0.0, 0.0, 0.0, 0.0))
    waves: Float[Array, "2"] = parameter((0.0, 0.0))
    domain: tuple[tuple[float, float], ...] = eqx.field(default=((-10.0, 10.0),), static=True)

    def velocity(self, x, t, u):
        powers = jnp.stack([jnp.ones_like(u), u, u**2])
        speed = (self.velocity_numerator @ powers) / (self.velocity_denominator @ powers) ** 2
        return speed[:, None] + self.drift * x

    def source(self, x, t, u):
        return -self.decay[0] * u - self.decay[1] * u**2

    def initial(self, x):
        x = x[:, 0]
        piece = jnp.searchsorted(self.breaks, x, side="right")
        straight = self.values[piece] + self.slopes[piece] * (x - self.breaks[jnp.minimum(piece, 2)])
        return straight + jnp.exp(-(x**2) / 8) * (self.waves[0] * jnp.sin(2 * x) + self.waves[1] * jnp.cos(4 * x))

    def exact(self, x, t):
        raise NotImplementedError


def pulse(x, t):
    """u₀ = 1 between 0 and 1: a rarefaction behind a shock, which it reaches at t = 2."""
    shock = np.where(t < 2, 1 + t / 2, np.sqrt(2 * t))
    return np.where((x < 0) | (x > shock), 0, np.where(x < t, x / np.maximum(t, 1e-300), 1))


def n_wave(x, t):
    """u₀ = x between −1 and 1."""
    return np.where(np.abs(x) < np.sqrt(1 + t), x / (1 + t), 0)


def ramp(x, t):
    """u₀ = 1, then falling to 0 between 0 and 1: all meet at t = 1."""
    before = np.clip((1 - x) / np.maximum(1 - t, 1e-300), 0, 1)
    return np.where(t < 1, before, np.where(x < (1 + t) / 2, 1, 0))


def two_shocks(x, t):
    """u₀ = 2, 1, 0 with steps at −1 and 0: shocks of the speeds 3/2 and 1/2 meet at t = 1, then one of speed 1."""
    before = np.where(x < -1 + 1.5 * t, 2, np.where(x < t / 2, 1, 0))
    return np.where(t < 1, before, np.where(x < t - 0.5, 2, 0))


def red_light(x, t):
    """Cars of density 0.3 arrive at a standing queue, which grows backwards at f(0.3)/(1 − 0.3) = 0.3."""
    return np.where(x < -0.3 * t, 0.3, 1)


def green_light(x, t):
    """A queue starts: a rarefaction between the characteristic speeds −1 and 1."""
    return np.clip((1 - x / np.maximum(t, 1e-300)) / 2, 0, 1)


WATER = 0.5  # viscosity of water over that of oil, Buckley–Leverett


def buckley_leverett(x, t):
    """Water displaces oil: a rarefaction from u = 1 to the point whose tangent goes through 0, then a shock."""
    u = np.linspace(np.sqrt(WATER / (1 + WATER)), 1, 200_001)
    speed = 2 * WATER * u * (1 - u) / (u**2 + WATER * (1 - u) ** 2) ** 2
    ray = x / np.maximum(t, 1e-300)
    return np.where(ray < 0, 1, np.where(ray > speed[0], 0, np.interp(ray, speed[::-1], u[::-1])))


K = 0.4


def decaying_pulse(x, t):
    """With the source −k·u, u·exp(k·t) solves Burgers' equation in the time (1 − exp(−k·t))/k."""
    return np.exp(-K * t) * pulse(x, -np.expm1(-K * t) / K)


def decaying_ramp(x, t):
    return np.exp(-K * t) * ramp(x, -np.expm1(-K * t) / K)


MEETING = (np.exp(1.6) - 1) / 2


def decaying_steps(x, t):
    """With the source −u², constant states decay as u/(1 + u·t), and shocks move with logarithms."""
    first = -1 + np.log((1 + 2 * t) * (1 + t)) / 2
    second = -0.2 + np.log(1 + t) / 2
    joint = -0.2 + np.log(1 + MEETING) / 2 + np.log((1 + 2 * t) / (1 + 2 * MEETING)) / 2
    before = np.where(x < first, 2 / (1 + 2 * t), np.where(x < second, 1 / (1 + t), 0))
    return np.where(t < MEETING, before, np.where(x < joint, 2 / (1 + 2 * t), 0))


def drifting_pulse(x, t):
    """With the velocity u + k·x, y = x·exp(−k·t) obeys Burgers' equation in the time (1 − exp(−k·t))/k."""
    return pulse(x * np.exp(-K * t), -np.expm1(-K * t) / K)


PULSE = {"breaks": (0.0, 1.0, 1.0), "values": (0.0, 1.0, 0.0, 0.0)}
RAMP = {"breaks": (0.0, 1.0, 1.0), "values": (1.0, 0.0, 0.0, 0.0), "slopes": (0.0, -1.0, 0.0, 0.0)}
N_WAVE = {"breaks": (-1.0, 1.0, 1.0), "values": (0.0, 1.0, 0.0, 0.0), "slopes": (0.0, 1.0, 0.0, 0.0)}
CARS = {"velocity_numerator": (1.0, -2.0, 0.0)}
OIL = {
    "velocity_numerator": (0.0, 2 * WATER, -2 * WATER),
    "velocity_denominator": (WATER, -2 * WATER, 1 + WATER),
}


def steps(left, middle, right, *, at=(-1.0, 0.0)):
    return {"breaks": (*at, at[1]), "values": (left, middle, right, right)}


CLOSED_FORMS = {
    "square pulse": (PULSE, pulse, 1e-10),
    "N-wave": (N_WAVE, n_wave, 1e-10),
    "ramp": (RAMP, ramp, 1e-10),
    "two shocks that merge": (steps(2.0, 1.0, 0.0), two_shocks, 1e-10),
    "traffic at a red light": (CARS | steps(0.3, 0.3, 1.0), red_light, 1e-10),
    "traffic at a green light": (CARS | steps(1.0, 1.0, 0.0), green_light, 1e-10),
    "Buckley-Leverett": (OIL | steps(1.0, 1.0, 0.0), buckley_leverett, 1e-7),
    "decaying square pulse": (PULSE | {"decay": (K, 0.0)}, decaying_pulse, 1e-6),
    "decaying ramp": (RAMP | {"decay": (K, 0.0)}, decaying_ramp, 1e-6),
    "decaying shocks that merge": (
        steps(2.0, 1.0, 0.0, at=(-1.0, -0.2)) | {"decay": (0.0, 1.0)},
        decaying_steps,
        1e-6,
    ),
    "velocity that depends on x": (PULSE | {"drift": K}, drifting_pulse, 1e-6),
}


SLOW = {
    "decaying ramp",
    "decaying shocks that merge",
    "velocity that depends on x",
}  # another table of characteristics each


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CLOSED_FORMS]
)
def test_entropy_solution_has_its_closed_form(name):
    parameters, exact, tolerance = CLOSED_FORMS[name]
    random = np.random.default_rng(0)
    x, t = random.uniform(-3, 4, POINTS), random.uniform(0, 3, POINTS)
    u = solve(Law(**parameters), jnp.asarray(x)[:, None], jnp.asarray(t), after_shock="entropy")
    np.testing.assert_allclose(u, exact(x, t), atol=tolerance)


@pytest.mark.parametrize(
    ("name", "early", "late"),
    [
        ("square pulse", [(1.25, 1, 0)], [(6**0.5, 6**0.5 / 3, 0)]),
        ("N-wave", [(-(1.5**0.5), 0, -(1.5**-0.5)), (1.5**0.5, 1.5**-0.5, 0)], [(-2, 0, -0.5), (2, 0.5, 0)]),
        ("ramp", [], [(2, 1, 0)]),
        ("two shocks that merge", [(-0.25, 2, 1), (0.25, 1, 0)], [(2.5, 2, 0)]),
        ("traffic at a green light", [], []),
        ("Buckley-Leverett", [((1 + 3**0.5) / 4, 3**-0.5, 0)], [((1 + 3**0.5) * 1.5, 3**-0.5, 0)]),
        (
            "decaying shocks that merge",
            [(-1 + np.log(3) / 2, 1, 2 / 3), (-0.2 + np.log(1.5) / 2, 2 / 3, 0)],
            [(-0.2 + np.log((1 + MEETING) * 7 / (1 + 2 * MEETING)) / 2, 2 / 7, 0)],
        ),
    ],
)
def test_shocks_are_where_they_must_be(name, early, late):
    parameters, _, _ = CLOSED_FORMS[name]
    tolerance = 1e-6 if "decaying" in name else 1e-9
    found = shocks(Law(**parameters), [0.5, 3.0])
    assert found.count.tolist() == [len(early), len(late)]
    for i, expected in enumerate((early, late)):
        columns = np.stack([found.x[i], found.left[i], found.right[i]], axis=1)[: len(expected)]
        np.testing.assert_allclose(columns, np.reshape(expected, (-1, 3)), atol=tolerance)


def test_compressing_discontinuities_are_shocks_from_the_start():
    found = shocks(Law(**PULSE), 0.0)
    np.testing.assert_allclose((found.x, found.left, found.right), [[[1.0]], [[1.0]], [[0.0]]], atol=1e-12)


WAVES = {"waves": (1.0, 1.2)}  # six shocks at t = 2, four at t = 3


def waves(x):
    return np.exp(-(x**2) / 8) * (np.sin(2 * x) + 1.2 * np.cos(4 * x))


def test_mass_is_conserved_while_shocks_form_and_merge():
    law = Law(**WAVES)
    found = shocks(law, [2.0, 3.0])
    assert found.count.tolist() == [6, 4]
    nodes, weights = np.polynomial.legendre.leggauss(8)
    mass = quad(waves, -9.5, 9.5, epsabs=1e-12, limit=200)[0]
    for i, t in enumerate((2.0, 3.0)):
        # Panels between shocks, and between characteristics, which are close where u changes fast.
        jumps = np.asarray(found.x[i])[: int(found.count[i])]
        feet = np.linspace(-9.5, 9.5, POINTS // 4 + 1 - jumps.size)[1:-1]
        panels = np.sort(np.concatenate([[-9.5, 9.5], jumps, feet + t * waves(feet)]))
        half = np.diff(panels)[:, None] / 2
        x, weight = (panels[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()
        u = np.asarray(solve(law, jnp.asarray(x)[:, None], jnp.array(t), after_shock="entropy"))
        assert np.abs(u) @ weight > 1
        np.testing.assert_allclose(u @ weight, mass, atol=1e-9)


def test_least_action_and_front_tracking_agree():
    """Two methods without a line in common, on a problem that both solve."""
    law = Law(**WAVES)
    graph = initial_graph(law, FLOAT64)
    curve = trace_curve(law, graph, 3.0, TIMES, prepare(None, FLOAT64), FLOAT64)
    tracks = Tracker(law, curve, graph, FLOAT64, 1e-10).run()
    random = np.random.default_rng(0)
    x, t = random.uniform(-6, 6, 4 * POINTS), random.uniform(0, 3, 4 * POINTS)
    one, reached = least_action(make_law(law, graph, FLOAT64), x, t)
    other, also_reached = tracks.evaluate(x, t)
    assert reached.all()
    assert also_reached.all()
    np.testing.assert_allclose(one.value, other.u, atol=1e-6)


def godunov(cells, end):
    """Godunov's method for u_t + (u²/2)_x = −0.3·u², and where its cells are."""
    dx = 16 / cells
    x = -8 + dx * (np.arange(cells) + 0.5)
    u, t = waves(x), 0.0
    while t < end:
        dt = min(0.9 * dx / np.abs(u).max(), end - t)
        padded = np.concatenate([u[:1], u, u[-1:]])
        flux = np.maximum(np.maximum(padded[:-1], 0) ** 2, np.minimum(padded[1:], 0) ** 2) / 2
        u = (u - dt / dx * np.diff(flux)) / (1 + 0.3 * dt * u)
        t += dt
    return x, u


def test_finite_volumes_converge_to_it():
    coarse, _ = godunov(POINTS, 0.0)
    entropy = solve(Law(**WAVES, decay=(0.0, 0.3)), jnp.asarray(coarse)[:, None], jnp.array(1.5), after_shock="entropy")
    distances = []
    for refinement in (1, 3, 9):  # odd, so that the centers of coarse cells are centers of fine ones
        x, u = godunov(POINTS * refinement, 1.5)
        np.testing.assert_allclose(x[refinement // 2 :: refinement], coarse)
        distances.append(np.abs(u[refinement // 2 :: refinement] - entropy).mean())
    assert distances[0] > 2 * distances[1] > 4 * distances[2]
    assert distances[2] < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize(("decay", "tolerance"), [((0.0, 0.0), 1e-9), ((0.5, 0.0), 1e-5)])
def test_gradients_are_those_of_the_closed_form(decay, tolerance):
    """u₀ = h·x between −1 and 1 keeps its shape: u = h·x/(1 + h·τ)·exp(−k·t)."""
    x, t = jnp.linspace(-0.2, 0.9, POINTS)[:, None], jnp.full(POINTS, 2.0)

    def closed_form(law, x, t):
        k = law.decay[0]
        time = jnp.where(k > 0, -jnp.expm1(-k * t) / jnp.where(k > 0, k, 1), t)
        h = law.slopes[1]
        return h * x[:, 0] / (1 + h * time) * jnp.exp(-k * t)

    def loss(u):
        return lambda args: jnp.sum(jnp.sin(3 * u(*args)))

    entropy = lambda law, x, t: solve(law, x, t, after_shock="entropy")
    args = (Law(**N_WAVE, decay=decay), x, t)
    found, expected = (eqx.filter_grad(loss(u))(args) for u in (entropy, closed_form))
    np.testing.assert_allclose(found[1], expected[1], atol=tolerance)
    np.testing.assert_allclose(found[2], expected[2], atol=tolerance)
    if any(decay):
        np.testing.assert_allclose(found[0].decay[0], expected[0].decay[0], rtol=tolerance)
    # A straight line is given by its slope and its value at x = 1: for h·x both change with h.
    np.testing.assert_allclose(found[0].slopes[1] + found[0].values[1], expected[0].slopes[1], rtol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["square pulse", "two shocks that merge", "decaying shocks that merge"])
def test_float32_points_give_float32_values(name):
    parameters, exact, _ = CLOSED_FORMS[name]
    random = np.random.default_rng(0)
    x, t = random.uniform(-3, 4, POINTS), random.uniform(0.1, 3, POINTS)
    with jax.enable_x64(False):
        u = solve(Law(**parameters), jnp.asarray(x)[:, None], jnp.asarray(t), after_shock="entropy")
        assert u.dtype == jnp.float32
        np.testing.assert_allclose(u, exact(x, t), atol=1e-4)


def ask(problem, **arguments):
    return solve(problem, jnp.zeros((1, problem.dim)), jnp.ones(1), after_shock="entropy", **arguments)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (lambda: PlaneBurgers(), "on a line only.*2 space dimensions"),
        (lambda: TracerBurgers(), r"scalar u only.*shape \(2,\)"),
        (lambda: Law(**OIL, **PULSE), "convex or concave.*between u=0 and u=1.*narrow"),
        (lambda: Law(**OIL, **steps(1.0, 1.0, 0.0), decay=(0.1, 0.0)), "convex or concave.*u=1 and u=0.*t=0"),
        (lambda: Law(values=(np.nan,) * 4), r"initial\(x\) is not finite at -10"),
        (lambda: Problem(lambda x, t, u: u, lambda x: x[:, 0], domain=(-1, 1)), r"velocity\(x, t, u\) must return"),
    ],
    ids=["two dimensions", "two values", "flux", "flux with a source", "not finite", "wrong shape"],
)
def test_what_is_not_supported_is_refused_with_the_fix(problem, message):
    with pytest.raises(ValueError, match=message):
        ask(problem())


def test_arguments_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="not both"):
        ask(Law(), allow_multivalued=True)
    with pytest.raises(ValueError, match="'error' or 'entropy'"):
        check_after_shock("ignore", False, None)
    with pytest.raises(ValueError, match="outside"):
        jax.jit(lambda t: solve(Law(), jnp.zeros((1, 1)), t, after_shock="entropy"))(jnp.ones(1))
    with pytest.raises(ValueError, match="at least 0"):
        shocks(Law(), -1.0)


def test_points_that_the_domain_does_not_determine_are_refused():
    """Information from outside of the domain moves in at the speed 2 from the left."""
    x, t = jnp.full((POINTS, 1), -5.0), jnp.linspace(0, 3, POINTS)
    with pytest.raises(FootPointError, match=r"t=2\.50.*widen"):
        solve(Law(**steps(2.0, 1.0, 0.0)), x, t, after_shock="entropy")


@pytest.mark.slow
def test_crossing_is_an_error_by_default():
    with pytest.raises(MultivaluedError):
        solve(Law(**RAMP), jnp.array([[1.2]]), jnp.array([1.5]))
