"""Learning curves, and the style that all figures share."""

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from charax.plotting import plot_learning_curve, save_figure
from charax.plotting._learning_curves import save_learning_curves


@pytest.fixture
def figures(monkeypatch) -> list[Figure]:
    """The figures that are saved, with their lines."""
    saved: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path: saved.append(figure))
    return saved


def history(*losses: float | None) -> list[dict[str, float | None]]:
    rows: list[dict[str, float | None]] = [
        {"epoch": i, "loss": loss, "validation_loss": loss, "accuracy": 0.5, "validation_accuracy": 0.25}
        for i, loss in enumerate(losses, start=1)
    ]
    return [*rows, {"best_epoch": 1, "test_loss": 9.0}]


def test_learning_curves_show_both_splits_per_epoch_and_not_the_test_split(figures, tmp_path):
    save_learning_curves(history(3.0, 2.0), tmp_path / "training.png")
    loss, accuracy = figures[0].axes
    assert [line.get_label() for line in accuracy.lines] == ["training", "validation"]
    assert [list(line.get_xdata()) for line in accuracy.lines] == [[1, 2], [1, 2]]
    assert [list(line.get_ydata()) for line in accuracy.lines] == [[0.5, 0.5], [0.25, 0.25]]
    assert [list(line.get_ydata()) for line in loss.lines] == [[3, 2], [3, 2]]


@pytest.mark.parametrize(("losses", "scale"), [((3.0, 2.0), "log"), ((3.0, -2.0), "linear"), ((3.0, None), "log")])
def test_the_axis_is_logarithmic_unless_a_loss_is_negative(losses, scale, figures, tmp_path):
    save_learning_curves(history(*losses), tmp_path / "training.png")
    assert figures[0].axes[0].get_yscale() == scale


def test_a_single_epoch_is_a_visible_point(figures, tmp_path):
    save_learning_curves(history(3.0), tmp_path / "training.png")
    assert figures[0].axes[0].lines[0].get_marker() == "o"


def test_a_metric_that_is_not_there_is_refused_with_those_that_are():
    assert plot_learning_curve(history(3.0), metric="accuracy").get_ylabel() == "accuracy"
    with pytest.raises(ValueError, match="choose from loss, accuracy"):
        plot_learning_curve(history(3.0), metric="error")


def test_a_figure_is_saved_at_the_end_and_leaves_the_settings_of_matplotlib_alone(tmp_path):
    before = dict(mpl.rcParams)
    with save_figure(tmp_path / "line.png", width=2.0, height=1.0) as figure:
        figure.subplots().plot([0, 1], [0, 1])
        assert not (tmp_path / "line.png").exists()
    assert (tmp_path / "line.png").read_bytes().startswith(b"\x89PNG")
    assert dict(mpl.rcParams) == before


def test_nothing_is_saved_if_the_block_fails(tmp_path):
    with pytest.raises(RuntimeError, match="no data"), save_figure(tmp_path / "line.png", width=2.0, height=1.0):
        raise RuntimeError("no data")
    assert not list(tmp_path.iterdir())


def test_a_logarithmic_axis_has_plain_numbers_also_within_a_power_of_ten():
    from matplotlib.figure import Figure

    from charax.plotting._learning_curves import _use_plain_log_scale

    figure = Figure()
    axis = figure.subplots()
    axis.plot([1, 2], [0.15, 3.0])
    _use_plain_log_scale(axis)
    figure.canvas.draw()
    labels = {tick.get_text() for tick in (*axis.yaxis.get_majorticklabels(), *axis.yaxis.get_minorticklabels())}
    assert {"0.2", "0.5", "1", "2"} <= labels
    assert not any("10^" in label for label in labels)
