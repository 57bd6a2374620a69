"""The figure of a known PDE."""

import pytest

from charax.pde import PROBLEMS
from charax.plotting import plot_problem


@pytest.mark.slow
def test_the_figure_has_the_solution_its_characteristics_and_their_first_crossing():
    axes = plot_problem(PROBLEMS["burgers-sine"](), x=(0.0, 6.28), until=1.5, curves=10)
    assert len(axes.lines) == 1 + 20  # the time of the first crossing, and curves that enter later
    assert axes.texts[0].get_text() == "first crossing, t = 1"
    colors = axes.collections[-1].get_array()
    assert colors.min() == pytest.approx(-1, abs=0.05)
    assert colors.max() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("name", ["rotation", "burgers-tracer"])
def test_problem_that_does_not_fit_the_plane_is_refused(name):
    with pytest.raises(ValueError, match="scalar problem on a line"):
        plot_problem(PROBLEMS[name](), x=(0.0, 1.0), until=1.0)


@pytest.mark.parametrize(("x", "until"), [((1.0, 0.0), 1.0), ((0.0, 1.0), 0.0)])
def test_empty_range_is_refused(x, until):
    with pytest.raises(ValueError, match="nothing to plot"):
        plot_problem(PROBLEMS["advection"](), x=x, until=until)
