"""A function per question, that plots into the axes it is given."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

from charax.fields import CharacteristicField, FunctionJacobian, FunctionVelocity, PlainField
from charax.models.flows import ContinuousFlow
from charax.plotting import (
    plot_characteristics,
    plot_density,
    plot_equation,
    plot_flow_at,
    plot_forecast,
    plot_trajectories,
)
from charax.solve import Solver

ROOT = Path(__file__).parents[2]
SOLVER = Solver("heun", steps=20)
AT = jnp.linspace(0, 1, 5)


@pytest.fixture
def axes():
    return Figure().subplots()


@pytest.fixture(scope="module")
def decay() -> PlainField:
    return PlainField(lambda u: -u, reads=("u",))


@pytest.fixture(scope="module")
def halving(decay) -> ContinuousFlow:
    """Its samples are twice normal numbers."""
    return ContinuousFlow(decay, (2,), end_time=float(np.log(2)))


def test_trajectories_of_one_number_are_plotted_over_s(decay, axes):
    solution = SOLVER.solve(decay, jnp.array([[1.0], [2.0]]), at=AT)
    assert plot_trajectories(solution, axes, color="black") is axes
    np.testing.assert_allclose(axes.lines[1].get_ydata(), 2 * np.exp(-AT), rtol=1e-3)
    assert axes.lines[1].get_color() == "black"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("s", "u(s)")


def test_characteristics_are_plotted_in_their_plane(axes):
    velocity = FunctionVelocity(
        lambda s, x, u, z: jnp.broadcast_to(jnp.array([1.0, 2.0]), (len(u), 2)), 2, reads=("u",)
    )
    field = CharacteristicField(velocity, FunctionJacobian(lambda x, u: jnp.zeros((len(u), 2, 1)), 2))
    solution = SOLVER.solve(field, jnp.zeros((1, 1)), at=AT, with_characteristic=True)
    plot_characteristics(solution, axes)
    np.testing.assert_allclose(axes.lines[0].get_xydata(), np.outer(AT, [1, 2]), atol=1e-6)


def test_what_was_not_asked_for_is_named(decay):
    solution = SOLVER.solve(decay, jnp.ones((1, 1)))
    with pytest.raises(ValueError, match="solve with at="):
        plot_trajectories(solution)
    with pytest.raises(ValueError, match="with_characteristic=True"):
        plot_characteristics(solution)


def test_the_density_is_that_of_the_flow(halving, axes):
    data = np.array([[0.5, 0.5]])
    plot_density(halving, axes, reach=2.0, points=5, solver=SOLVER, data=data)
    (mesh,) = axes.collections
    assert np.max(mesh.get_array()) == pytest.approx(1 / (2 * np.pi * 4), rel=1e-3)
    assert axes.lines[0].get_xydata().tolist() == data.tolist()
    with pytest.raises(ValueError, match="over the plane"):
        plot_density(ContinuousFlow(halving.field, (3,)))


def test_the_grid_moves_with_the_flow(halving, axes):
    plot_flow_at(halving, float(np.log(2)), axes, reach=2.0, lines=3, solver=SOLVER)
    vertical, horizontal = axes.collections
    assert len(vertical.get_segments()) == len(horizontal.get_segments()) == 3
    np.testing.assert_allclose(vertical.get_segments()[0][0], [-1, -1], rtol=1e-3)


def test_an_equation_and_a_forecast_have_what_they_are_compared_with(axes):
    u = np.linspace(0, 1, 4)
    plot_equation(u, {"source": 2 * u}, axes=axes, name="source")
    assert axes.get_title() == "source c(u)"
    assert plot_equation(u, {"velocity": u}, over="x").get_title() == "velocity a(x)"
    assert [line.get_label() for line in axes.lines] == ["learned"]
    forecast = plot_forecast(u, u, u - 1, u + 1, observed=[("test", u, u)])
    assert [text.get_label() for text in forecast.get_lines()] == ["forecast", "test"]


def test_no_text_is_smaller_than_eight_points():
    for path in [*(ROOT / "charax").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]:
        for size in re.findall(r"fontsize=\"?([\w.-]+)", path.read_text()):
            assert size in ("small", "medium", "large") or float(size) >= 8, f"{path}: {size}"
