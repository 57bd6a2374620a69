"""The picture of a known PDE."""

import matplotlib.image as image
import pytest

from charax.pde import PROBLEMS
from charax.plotting import draw_problem


@pytest.mark.slow
def test_picture_has_the_colours_of_the_solution(tmp_path):
    path = draw_problem(PROBLEMS["burgers-sine"](), tmp_path / "burgers.png", x=(0.0, 6.28), until=1.5)
    pixels = image.imread(path)
    assert len({tuple(pixel) for pixel in pixels[::7, ::7, :3].reshape(-1, 3)}) > 100


@pytest.mark.parametrize("name", ["rotation", "burgers-tracer"])
def test_problem_that_does_not_fit_the_plane_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match="scalar problem on a line"):
        draw_problem(PROBLEMS[name](), tmp_path / "no.png", x=(0.0, 1.0), until=1.0)


def test_empty_range_is_refused(tmp_path):
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_problem(PROBLEMS["advection"](), tmp_path / "no.png", x=(1.0, 0.0), until=1.0)
