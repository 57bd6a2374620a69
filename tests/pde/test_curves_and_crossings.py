import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.pde import PROBLEMS, Burgers, PaperProblem, PlaneBurgers, Sine, TracerBurgers, characteristics, shock_time

CROSSINGS = {
    "sine": (lambda: Burgers(profile=Sine(amplitude=2.0, wavenumber=1.5)), 1 / 3),
    "ramp": (PROBLEMS["burgers-ramp"], 1.0),
    "traffic": (PROBLEMS["traffic"], np.exp(0.5) / 1.2),
    "paper, falling": (lambda: PaperProblem(slope=-2.0), np.log(1.5)),
    "plane": (lambda: PlaneBurgers(matrix=((-0.5, 0.0), (0.3, 0.2))), 2.0),
    "rotation": (PROBLEMS["rotation"], np.inf),
}


@pytest.mark.parametrize(
    "name", [name if name == "sine" else pytest.param(name, marks=pytest.mark.slow) for name in CROSSINGS]
)
def test_shock_time_is_the_first_crossing(name):
    problem, expected = CROSSINGS[name]
    np.testing.assert_allclose(shock_time(problem(), horizon=4.0), expected, rtol=1e-6)


def test_no_crossing_before_the_horizon_is_infinity():
    burgers = PROBLEMS["burgers-sine"]()
    assert shock_time(burgers, horizon=0.9) == jnp.inf
    with pytest.raises(ValueError, match="horizon must be"):
        shock_time(burgers, horizon=-1.0)


@pytest.mark.slow
def test_shock_time_jits_and_differentiates():
    when = jax.jit(jax.value_and_grad(lambda amplitude: shock_time(Burgers(profile=Sine(amplitude)), horizon=3.0)))
    value, slope = when(jnp.array(2.0))
    np.testing.assert_allclose((value, slope), (0.5, -0.25), rtol=1e-5)


def test_characteristics_of_burgers_are_straight_and_keep_their_value():
    starts, times = jnp.linspace(-2, 2, 5)[:, None], jnp.array([0.0, 0.5, 3.0])
    curves = characteristics(TracerBurgers(profile=Sine()), starts, times)
    value = np.sin(starts[:, 0])
    np.testing.assert_allclose(curves.u[..., 0], np.broadcast_to(value, (3, 5)), atol=1e-9)
    np.testing.assert_allclose(curves.u[..., 1], np.exp(-times[:, None]) * np.cos(starts[:, 0]), atol=1e-8)
    np.testing.assert_allclose(curves.x[..., 0], starts[:, 0] + times[:, None] * value, atol=1e-9)


def test_characteristics_at_time_0_are_at_their_foot_points():
    curves = characteristics(TracerBurgers(profile=Sine()), jnp.zeros((5, 1)), jnp.zeros(3))
    assert curves.u.shape == (3, 5, 2)
    assert not curves.x.any()


def test_characteristics_of_a_rotation_are_circles():
    curves = characteristics(PROBLEMS["rotation"](), jnp.array([[1.0, 0.0]]), jnp.linspace(0, 6, 7))
    circle = np.stack([np.cos(curves.t), np.sin(curves.t)], axis=1)
    np.testing.assert_allclose(curves.x[:, 0], circle, atol=1e-8)


@pytest.mark.parametrize("times", [[1.0, 0.5], [-1.0, 0.0], [0.0, np.nan], []])
def test_times_out_of_order_are_refused(times):
    with pytest.raises(ValueError, match="times must be"):
        characteristics(PROBLEMS["advection"](), jnp.zeros((1, 1)), jnp.array(times))


def test_starts_of_another_dimension_are_refused():
    with pytest.raises(ValueError, match=r"starts must be \[starts, 2\]"):
        characteristics(PROBLEMS["rotation"](), jnp.zeros((1, 1)), jnp.ones(1))
