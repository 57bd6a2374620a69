"""Figures of classifiers."""

import contextlib

import numpy as np
import pytest
from matplotlib.figure import Figure

from charax.tasks.classification import _plots


@pytest.mark.parametrize(("spread", "says"), [(0.01, "x(s) minus their mean"), (1.0, "learned characteristics x(s),")])
@pytest.mark.parametrize("k", [1, 2])
def test_characteristics_that_coincide_are_spread(spread, says, k, tmp_path, monkeypatch):
    figure, s, labels = Figure(), np.linspace(0, 1, 5), np.arange(6) % 2
    x = s[:, None, None] * (1 + spread * np.arange(6)[None, :, None]) * np.ones(k)
    monkeypatch.setattr(_plots, "save_figure", lambda *_, **__: contextlib.nullcontext(figure))
    _plots.plot_learned_characteristics(x, labels, ("a", "b"), tmp_path / "x.png")
    assert says in figure.axes[0].get_title()
    heights = np.array([np.asarray(line.get_ydata())[-1] for line in figure.axes[0].lines])
    assert np.ptp(heights) == pytest.approx(5 * spread)
    assert np.ptp(heights) > 0.5 * np.abs(heights).max()
    assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)
