"""The report of a learned PDE."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import charax
from charax.tasks.pde._report import _first_crossing


@pytest.fixture(scope="module")
def sections():
    config = charax.PDEConfig(data="paper", method="equation", width=2, points=60)
    loaded = config.load_data()
    task = config.build_task(loaded.spec)
    return {each.title: each for each in task.report(task.build(jax.random.key(0)), loaded.splits, data="paper")}


@pytest.mark.slow
def test_it_shows_the_solution_its_profile_its_fit_and_its_equation(sections):
    assert list(sections) == ["Solution and characteristics", "Solution over time", "Fit", "Learned equation"]
    assert "cross" in sections["Solution and characteristics"].text


@pytest.mark.slow
def test_the_profile_moves_in_time_beside_the_exact_one(sections):
    section = sections["Solution over time"]
    assert section.frame_label == "t"
    assert [trace.name for trace in section.figure.data] == ["exact", "learned"]
    frame = section.figure.frames[10]
    x, exact = np.asarray(frame.data[0].x), np.asarray(frame.data[0].y)
    truth = charax.pde.PROBLEMS["paper"]().exact(jnp.asarray(x[:, None]), jnp.full(len(x), float(frame.name)))
    np.testing.assert_allclose(exact, truth, rtol=1e-2)


@pytest.mark.slow
def test_the_equation_is_shown_beside_the_exact_one(sections):
    assert [trace.name for trace in sections["Learned equation"].figure.data] == ["exact", "learned"] * 2


def test_the_first_crossing_of_curves_is_named():
    t = np.array([0.0, 1.0, 2.0])
    assert _first_crossing(np.array([[0.0, 1.0], [0.5, 1.0], [2.0, 1.0]]), t) == 2
    assert _first_crossing(np.array([[0.0, 1.0], [0.5, 1.5], [1.0, 2.0]]), t) is None
