"""Forecasts from windows of past observations, next to persistence and a linear autoregression."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from charax import data, nn, plotting, train
from charax.paper._experiment import AbstractExperiment
from charax.paper._forecast_origins import cut_series, pool_origins
from charax.paper._records import RecordJob
from charax.paper._report import Column, Figure, Report
from charax.tasks import ForecastConfig
from charax.train import AbstractProgress, LoopConfig, OptimizerConfig, Sweep, to_json

Name = Literal[
    "theoph-subjects",
    "theoph-times",
    "indometh-subjects",
    "indometh-times",
    "indometh-origins",
    "sunspot-year",
    "lotka-volterra",
    "pendulum",
]


class _Setting(NamedTuple):
    """Data, how they are held out, and the size of the model."""

    file: str | None
    config: ForecastConfig
    period: float | None = None
    """The season, if there is one, in units of the data's time."""
    repeats: int = 1
    """More seeds where each holds out so few series that they decide."""
    rows: tuple[int, ...] = ()
    """Tests the last times of a file that ends after so many rows of each series, one after the other (rolling
    origins); those of the whole file if empty."""


_SMALL = ForecastConfig(
    width=16,
    state_dim=8,
    history=11,
    horizon=10,
    optimizer=OptimizerConfig(learning_rate=1e-2, weight_decay=1e-2, schedule="cosine", ema=0.99),
    loop=LoopConfig(epochs=6, batch_size=64),
)
_LARGE = replace(
    _SMALL, width=32, state_dim=16, history=20, hold_out="series", loop=LoopConfig(epochs=15, batch_size=64)
)

SETTINGS: Mapping[Name, _Setting] = MappingProxyType(
    {
        "theoph-subjects": _Setting(
            "theoph.csv", replace(_SMALL, context=("Wt", "Dose"), hold_out="series"), repeats=4
        ),
        "theoph-times": _Setting("theoph.csv", replace(_SMALL, context=("Wt", "Dose"), horizon=3)),
        "indometh-subjects": _Setting("indometh.csv", replace(_SMALL, hold_out="series"), repeats=4),
        "indometh-times": _Setting("indometh.csv", replace(_SMALL, horizon=3)),
        # One row less than 11 would be a part of the same test: of 11 rows two are tested, of fewer one.
        "indometh-origins": _Setting("indometh.csv", replace(_SMALL, horizon=3), rows=(11, 9, 8, 7, 6)),
        "sunspot-year": _Setting("sunspot-year.csv", replace(_SMALL, history=24, transform="sqrt"), period=11.0),
        "lotka-volterra": _Setting(None, _LARGE, period=6.6),
        "pendulum": _Setting(None, _LARGE, period=4.6),
    }
)

_COLUMNS = (
    Column("data set", "dataset"),
    Column("method", "method"),
    Column("seeds", "seeds", "d"),
    Column("RMSE", "scaled_rmse_mean", ".3f", "scaled_rmse_sd"),
    Column("coverage of 95% intervals", "covered_mean", ".1%", "covered_sd"),
    Column("parameters", "parameters", ",d"),
    Column("s", "seconds", ".1f"),
)


@dataclass(frozen=True)
class Forecasts(AbstractExperiment):
    """Forecasts of pharmacokinetics, sunspots and two simulated systems from past observations, next to persistence,
    seasonal persistence and a linear autoregression, with the coverage of prediction intervals. It resumes."""

    name: ClassVar[str] = "forecasts"

    dataset: tuple[Name, ...] = ()
    """Only these data sets; the files theoph.csv, indometh.csv and sunspot-year.csv are read from
    $CHARAX_DATA/series."""
    seeds: int = 5
    """Seeds per data set: of held-out series, simulated series and weights. Four times as many where subjects are left
    out, since each seed tests one or two."""
    epochs: int | None = None
    """Epochs of 50 steps each, instead of 15 for the simulated systems and 6 for the others."""

    def run(self, folder: Path, sweep: Sweep) -> Report:
        train.check_range(self, least={"seeds": 1, "epochs": 1})
        names = self.dataset or tuple(SETTINGS)
        groups = sweep.run_groups([self._jobs(name, folder) for name in names])
        rows = [row for name, results in zip(names, groups, strict=True) for row in _rows(name, results)]
        return Report(
            name=self.name,
            title="Forecasts from past observations, means over seeds",
            note="Errors are in standard deviations of the training values, over all values that are ahead.",
            columns=_COLUMNS,
            answer={"rows": rows},
            record={"seeds": self.seeds},
            figures=self.figures({"rows": rows}),
        )

    def figures(self, stored: Mapping[str, Any]) -> Mapping[str, Figure]:
        return {"forecasts.png": lambda path, rows=stored["rows"]: _plot(rows, path)}

    def _jobs(self, name: Name, folder: Path) -> list[RecordJob]:
        """The seeds of a data set."""
        setting, jobs = SETTINGS[name], []
        for seed in range(self.seeds * setting.repeats):
            loop = replace(setting.config.loop, seed=seed, epochs=self.epochs or setting.config.loop.epochs)
            config = replace(setting.config, data=setting.file or name, loop=loop)
            place = folder / "records" / f"{name}-seed{seed}.json"
            settings = {**to_json(config), "epochs": loop.epochs, "period": setting.period}
            arguments: dict[str, Any] = {"config": config, "period": setting.period}
            if setting.rows:
                settings["rows"] = arguments["rows"] = setting.rows
            jobs.append(RecordJob(place, settings, evaluate_origins if setting.rows else evaluate, arguments))
        return jobs


def _rows(name: Name, results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for method in results[0]["methods"]:
        each = [one["methods"][method] for one in results]
        row: dict[str, Any] = {"dataset": name, "method": method, "seeds": len(each)}
        for key in ("scaled_rmse", "covered"):
            row[f"{key}_mean"], row[f"{key}_sd"] = train.mean_and_sd([one[key] for one in each])
        own = method == SETTINGS[name].config.method
        row["parameters"] = results[0]["parameters"] if own else None
        row["seconds"] = train.mean_and_sd([one["seconds"] for one in results])[0] if own else None
        rows.append(row)
    return rows


def evaluate_origins(
    config: ForecastConfig, period: float | None, rows: Sequence[int], *, progress: AbstractProgress | None = None
) -> dict[str, Any]:
    """Train anew for each end of the file, and pool the tests of its last times."""
    source, found = Path(find_file(config.data)), []
    with tempfile.TemporaryDirectory() as folder:
        for count in rows:
            path = cut_series(source, Path(folder) / f"{count}.csv", count, series=config.series)
            found.append(evaluate(replace(config, data=str(path)), period, progress=progress))
    origins = [{"rows": count, **one} for count, one in zip(rows, found, strict=True)]
    return {**pool_origins(found), "origins": origins}


def evaluate(
    config: ForecastConfig, period: float | None, *, progress: AbstractProgress | None = None
) -> dict[str, Any]:
    """Train, and test next to the baselines on the same windows."""
    import numpy as np

    from charax.paper import _forecast_baselines as baselines

    config = replace(config, data=find_file(config.data))
    loaded = config.load_data()
    task = config.build_task(loaded.spec)
    fitted = train.fit(task, loaded.splits, config.loop, config.optimizer, progress=progress)
    assert config.history is not None
    windows = data.load_forecast_windows(
        config.data,
        context=config.context,
        history=config.history,
        horizon=config.horizon,
        hold_out=config.hold_out,
        seed=config.loop.seed,
    )
    found = {"persistence": baselines.persistence(windows)}
    if period is not None:
        found["seasonal persistence"] = baselines.seasonal_persistence(windows, period)
    found["linear autoregression"] = baselines.autoregression(windows)
    scores = {name: one.score(windows) for name, one in found.items()}
    rename = lambda score: {"scaled_rmse": score["rmse"], "covered": score["covered"]}
    return {
        "methods": {
            config.method: pooled_score(task, fitted.model, loaded.splits.test, windows.units.value_scale),
            **{name: rename(score) for name, score in scores.items()},
        },
        "values": int(np.isfinite(windows.test.values).sum()),
        "parameters": nn.count_parameters(fitted.model),
        "best_epoch": fitted.history[-1]["best_epoch"],
        "seconds": fitted.seconds,
    }


def find_file(name: str) -> str:
    """The path of a file of series, or the name of simulated ones."""
    if name in data.DYNAMICS or Path(name).is_absolute():
        return name
    path = Path(os.environ.get("CHARAX_DATA", "data")) / "series" / name
    if not path.exists():
        raise ValueError(
            f"{path} does not exist: write R's data set there, with the columns series, time and its values, and set "
            "CHARAX_DATA to the folder above series"
        )
    return str(path)


def pooled_score(task: Any, model: Any, windows: "data.ForecastWindows", scale: Sequence[float]) -> dict[str, float]:
    """The error, in units of `scale`, and the coverage over all values that are ahead."""
    import numpy as np

    forecast, lower, upper = task.forecast(model, windows)
    truth = task.spec.units.restore(windows.values)
    error, known = (forecast - truth) / np.asarray(scale), ~np.isnan(truth)
    # Values at the end of an interval are inside, but for how numbers are rounded in single precision.
    margin = 1e-6 * np.asarray(scale)
    inside = (lower - margin <= truth) & (truth <= upper + margin)
    return {"scaled_rmse": float(np.sqrt(np.mean(error[known] ** 2))), "covered": float(inside[known].mean())}


def _plot(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    """Errors and coverages: one group of bars per data set."""
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    colors = dict(zip(methods, (plotting.C_NODE, *plotting.CLASSES[1:]), strict=False))
    with plotting.save_figure(path, width=4.5 + 1.2 * len(datasets), height=5.6) as figure:
        axes = figure.subplots(2, 1, sharex=True)
        for number, method in enumerate(methods):
            chosen = {row["dataset"]: row for row in rows if row["method"] == method}
            places = [datasets.index(name) + 0.2 * (number - 1.5) for name in chosen]
            for axis, key, factor in ((axes[0], "scaled_rmse", 1), (axes[1], "covered", 100)):
                means = [factor * row[f"{key}_mean"] for row in chosen.values()]
                sds = [factor * (row[f"{key}_sd"] or 0.0) for row in chosen.values()]
                if axis is axes[0]:
                    axis.bar(places, means, 0.18, yerr=sds, color=colors[method], label=method)
                else:
                    axis.errorbar(places, means, yerr=sds, fmt="o", markersize=4, color=colors[method])
        axes[0].set_title("Error of forecasts of test series")
        axes[1].set_title("How many observations lie in the 95% intervals; grey: 90 to 98%")
        axes[0].set_ylabel("RMSE, standard deviations")
        axes[1].set_ylabel("coverage, %")
        axes[1].axhspan(90, 98, color=plotting.EXACT, alpha=0.12, linewidth=0)
        axes[1].axhline(95, color=plotting.EXACT, linewidth=0.8)
        axes[1].set_xticks(range(len(datasets)), datasets, rotation=20, ha="right")
        axes[0].legend(loc="upper left", bbox_to_anchor=(1, 1))
    return path
