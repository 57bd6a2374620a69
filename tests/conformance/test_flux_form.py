"""The conservative flux form networks of the benchmarks: they conserve, and the scheme converges to what is exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import flux_form
from benchmarks.flux_form import ASKED, Design, LimitedFlux, Wave, advance, assess, build, exact_averages
from charax.pde import Burgers, Sine, solve

BURGERS = LimitedFlux(lambda u: u**2 / 2)
DESIGNS = {
    "stencil": Design("stencil", 4, 2, 0.0),
    "kurganov-tadmor": Design("kurganov-tadmor", 4, 1, 0.0),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_mass_is_conserved_by_any_weights(name):
    flux = build(DESIGNS[name], jax.random.key(0))
    u = jnp.asarray(exact_averages(ASKED, np.array([0.5]))[0], jnp.float32)
    later = np.asarray(advance(flux, u, 3), float)
    assert np.abs(later[-1] - np.asarray(u)).max() > 1e-3
    np.testing.assert_allclose(later.mean(axis=1), float(u.mean()), rtol=1e-6)


@pytest.mark.parametrize("value", [-1.5, 0.7, 2.0])
def test_the_limited_flux_of_a_constant_state_is_the_flux(value):
    np.testing.assert_allclose(BURGERS(jnp.full(8, value)), value**2 / 2, rtol=1e-6)


def test_a_stencil_has_as_many_cells_on_either_side():
    flux = build(DESIGNS["stencil"], jax.random.key(0))
    change = lambda cell: np.flatnonzero(np.asarray(flux(jnp.zeros(12).at[cell].set(1.0)) - flux(jnp.zeros(12))))
    assert change(5).tolist() == [3, 4, 5, 6]  # the face to the right of cell i sees i - 1 to i + 2


def test_exact_averages_are_those_of_the_entropy_solution():
    problem = Burgers(profile=Sine(amplitude=1.0, mean=2.0), domain=((-6.0, 12.0),))
    at = np.linspace(0, 2 * np.pi, 64 * 20, endpoint=False) + np.pi / 1280
    for t in (0.5, 1.6):
        u = solve(problem, jnp.asarray(at)[:, None], jnp.full(len(at), t), after_shock="entropy")
        mine = exact_averages(ASKED, np.array([t]))[0]
        error = np.abs(np.asarray(u).reshape(64, 20).mean(axis=1) - mine)
        assert np.sort(error)[-2] < 1e-3  # the midpoint rule is exact to its width in all cells but that of the shock


def test_with_the_exact_flux_the_scheme_converges(monkeypatch):
    coarse = assess(BURGERS)
    assert coarse["error_before_percent"] < 0.3
    assert coarse["shock_speed_error_percent"] < 0.1
    assert coarse["mass_error"] < 1e-4
    monkeypatch.setattr(flux_form, "STEP", 0.005)
    monkeypatch.setattr(flux_form, "STEPS_PER_PROFILE", 10)
    start, end = exact_averages(ASKED, np.array([0.0, 0.5]), cells=128)
    fine = np.abs(np.asarray(advance(BURGERS, jnp.asarray(start, jnp.float32), 10))[-1] - end).mean()
    assert fine / 2 < 0.4 * coarse["error_before_percent"] / 100  # of the mean |u|, which is 2


def test_waves_have_no_shock_before_the_data_end():
    assert all(1 / wave.amplitude > flux_form.SEEN for wave in flux_form.draw_waves(50, seed=0))
    assert isinstance(flux_form.draw_waves(1, seed=0)[0], Wave)


@pytest.mark.slow
def test_a_flux_is_learned_from_profiles(monkeypatch):
    monkeypatch.setattr(flux_form, "UPDATES", 300)
    data = flux_form.observe([ASKED, *flux_form.draw_waves(9, 0)], 0.0, 0)
    (flux,) = flux_form.fit(Design("kurganov-tadmor", 16, 1, 0.0), [1e-2], [data], [0])
    found = assess(flux)
    assert found["error_before_percent"] < 1
    assert found["shock_speed_error_percent"] < 3
