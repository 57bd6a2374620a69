import pytest

from charax.pde import PROBLEMS
from charax.plots import plot_characteristics


def test_picture_shows_solution_characteristics_and_first_crossing(tmp_path):
    figure = plot_characteristics(PROBLEMS["burgers-sine"](), x=(0.0, 6.28), until=1.5)
    axes = figure.axes[0]
    assert len(axes.lines) > 20
    assert "first crossing, t = 1" in [text.get_text() for text in axes.texts]
    figure.savefig(tmp_path / "burgers.png")
    assert (tmp_path / "burgers.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["rotation", "burgers-tracer"])
def test_problem_that_does_not_fit_the_plane_is_refused(name):
    with pytest.raises(ValueError, match="scalar problem on a line"):
        plot_characteristics(PROBLEMS[name](), x=(0.0, 1.0), until=1.0)


def test_empty_range_is_refused():
    with pytest.raises(ValueError, match="nothing to draw"):
        plot_characteristics(PROBLEMS["advection"](), x=(1.0, 0.0), until=1.0)
