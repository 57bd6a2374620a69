"""Figures of forecasts."""

import contextlib

import jax
import numpy as np
from matplotlib.figure import Figure

from charax import ForecastConfig
from charax.tasks.forecast import _plots, _window_plots


def test_panels_name_their_series_and_intervals_are_in_the_legend(tmp_path, monkeypatch):
    path, figure = tmp_path / "cities.csv", Figure()
    rows = [f"{city},{t},{np.exp(-t)}" for city in ("Berlin", "San Francisco") for t in np.linspace(0, 1, 20)]
    path.write_text("\n".join(["city,day,height", *rows]))
    config = ForecastConfig(data=str(path), series="city", time="day", width=4)
    data = config.load_data()
    task = config.build_task(data.spec)
    model = task.build(jax.random.key(0))
    monkeypatch.setattr(_plots, "save_figure", lambda *_, **__: contextlib.nullcontext(figure))
    _plots.plot_forecasts(task, model, data.splits, tmp_path / "forecast.png")
    titles, labels = ([axis.get_title() for axis in figure.axes], [axis.get_xlabel() for axis in figure.axes])
    assert titles == ["city Berlin", "city San Francisco"]
    assert labels == ["day since the start"] * 2
    legend = figure.axes[-1].get_legend()
    assert legend is not None
    assert "95% prediction interval" in [text.get_text() for text in legend.get_texts()]


def test_panels_of_windows_name_their_series_and_show_the_path_that_the_model_reads(tmp_path, monkeypatch):
    path, figure = tmp_path / "cities.csv", Figure()
    height = lambda day: "" if day == 15 else f"{np.cos(day)}"
    rows = [f"{city},{day},{height(day)}" for city in ("Berlin", "San Francisco") for day in range(20)]
    path.write_text("\n".join(["city,day,height", *rows]))
    config = ForecastConfig(data=str(path), series="city", time="day", history=4, horizon=3, folds=1, width=4)
    data = config.load_data()
    task = config.build_task(data.spec)
    model = task.build(jax.random.key(0))
    monkeypatch.setattr(_window_plots, "save_figure", lambda *_, **__: contextlib.nullcontext(figure))
    _window_plots.plot_windows(task, model, data.splits.test, tmp_path / "forecast.png")
    assert [axis.get_title() for axis in figure.axes] == ["city Berlin", "city San Francisco"]
    assert figure.axes[0].get_xlabel() == "day since the last observation"
    lines = {line.get_label(): line.get_xydata() for line in figure.axes[0].lines}
    past, drawn = np.asarray(lines["past"]), np.asarray(lines["interpolation"])
    observed = past[np.isfinite(past[:, 1])]
    assert len(observed) == 3
    np.testing.assert_allclose(
        drawn[:, 1], np.interp(drawn[:, 0], observed[:, 0], observed[:, 1]), rtol=1e-3, atol=1e-3
    )
