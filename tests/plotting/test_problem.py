"""The figure of a known PDE."""

import matplotlib.image as image
import pytest

from charax.pde import PROBLEMS
from charax.plotting import plot_problem


@pytest.mark.slow
def test_the_figure_has_the_colours_of_the_solution(tmp_path):
    path = plot_problem(PROBLEMS["burgers-sine"](), tmp_path / "burgers.png", x=(0.0, 6.28), until=1.5)
    pixels = image.imread(path)
    assert len({tuple(pixel) for pixel in pixels[::7, ::7, :3].reshape(-1, 3)}) > 100


@pytest.mark.parametrize("name", ["rotation", "burgers-tracer"])
def test_problem_that_does_not_fit_the_plane_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match="scalar problem on a line"):
        plot_problem(PROBLEMS[name](), tmp_path / "no.png", x=(0.0, 1.0), until=1.0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("x", "until"), [((1.0, 0.0), 1.0), ((0.0, 1.0), 0.0)])
def test_empty_range_is_refused(x, until, tmp_path):
    with pytest.raises(ValueError, match="nothing to plot"):
        plot_problem(PROBLEMS["advection"](), tmp_path / "no.png", x=x, until=until)
