"""Figures of recorded tables, drawn from their JSON: `python -m benchmarks.figures`, for some `… figures uci digits`.

A figure is a dot per number, with its spread where there is one. It is linked at the end of the table's page, unless
the page has it already. Nothing is measured or trained here.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from charax.plotting import C_NODE, CLASSES, EXACT, FAIR_NODE, NODE, save_figure

RESULTS = Path(__file__).parents[1] / "docs" / "results"
Row = Mapping[str, Any]
_MARKERS = "osD^vP"


@dataclass(frozen=True)
class Series:
    """One dot per row."""

    name: str
    value: str
    """The key of the number in a row."""
    color: str
    spread: str | None = None
    """The key of its standard deviation or standard error."""


@dataclass(frozen=True)
class Table:
    """What is drawn of a recorded table."""

    file: str
    title: str
    axis: str
    label: Callable[[Row], str]
    series: tuple[Series, ...]
    rows: Callable[[Any], Sequence[Row]] = lambda stored: stored["rows"]
    log: bool = False


def _variants(stored: Any) -> list[Row]:
    """One row per problem, with the error of every variant."""
    problems = dict.fromkeys(row["problem"] for row in stored["rows"])
    return [
        {"problem": problem}
        | {row["variant"]: max(row["error_mean"], 1e-4) for row in stored["rows"] if row["problem"] == problem}
        for problem in problems
    ]


def _digits(stored: Any) -> list[Row]:
    pairs = zip(stored["rows"], stored["accuracy_without_distortion"], strict=True)
    return [{"seed": row["seed"], "with": 100 * row["accuracy"], "without": 100 * other} for row, other in pairs]


def _first_fits(stored: Any) -> list[Row]:
    names = [name for name in stored if name not in ("at_most", "first epoch")]
    return [
        {
            "name": name,
            "empty": stored[name]["empty"]["first"]["seconds"],
            "warm": stored[name]["warm"]["first"]["seconds"],
            "later": max(fit["seconds"] for fit in stored[name]["warm"]["later"]),
        }
        for name in names
    ]


def _name_fluxes(row: Row) -> str:
    parts = [row["method"]]
    if row["values"]:
        parts += [f"{row['values']:,} values"]
    if row["noise"]:
        parts += [f"{100 * row['noise']:g}% noise"]
    if row.get("window", 1) > 1:
        parts += [f"pieces of {row['window']}"]
    return ", ".join(parts)


def _against_sklearn(linear: str) -> tuple[Series, ...]:
    return (
        Series("charax", "charax_mean", C_NODE, "charax_standard_error"),
        Series("linear model", f"{linear}_mean", EXACT, f"{linear}_standard_error"),
        Series("random forest", "forest_mean", FAIR_NODE, "forest_standard_error"),
    )


TABLES = {
    "tabular": Table(
        "tabular.json",
        "Log-likelihood of test rows: mean and standard deviation over five splits",
        "nats per row; larger is better",
        lambda row: row["dataset"],
        (
            Series("C-NODE flow", "log_likelihood_mean", C_NODE, "log_likelihood_sd"),
            Series("Gaussian", "log_likelihood_gaussian", EXACT),
            Series("kernels", "log_likelihood_kernel", FAIR_NODE),
        ),
    ),
    "uci": Table(
        "uci.json",
        "Log-likelihood of test rows: mean and standard deviation over the splits",
        "nats per row; larger is better",
        lambda row: row["dataset"],
        (
            Series("FlowRegressor", "log_likelihood_mean", C_NODE, "log_likelihood_sd"),
            Series("MC dropout, as published", "log_likelihood_mc_dropout", FAIR_NODE),
            Series("linear model", "log_likelihood_linear", EXACT),
        ),
    ),
    "small-tables": Table(
        "small-tables.json",
        "Small tables without flags: mean and standard error over five seeds",
        "test accuracy",
        lambda row: row["dataset"].replace("_", " "),
        _against_sklearn("logistic"),
    ),
    "estimators": Table(
        "estimators.json",
        "Estimators: mean and standard error over five folds",
        "score (accuracy, of diabetes R²)",
        lambda row: row["dataset"].replace("_", " "),
        _against_sklearn("linear"),
    ),
    "pairs": Table(
        "pairs.json",
        "Maps from pairs: mean over five seeds",
        "root mean square error; 0.0001 stands for less",
        lambda row: row["problem"],
        (
            Series("NODE", "node", NODE),
            Series("NODE, matched", "node-matched", FAIR_NODE),
            Series("C-NODE", "c-node-k2-u0", C_NODE),
            Series("C-NODE, matched", "c-node-k2-u0-matched", CLASSES[0]),
            Series("ANODE", "anode-1", CLASSES[4]),
            Series("plain network", "mlp", EXACT),
        ),
        rows=_variants,
        log=True,
    ),
    "digits": Table(
        "digits.json",
        "Digits: every split",
        "test accuracy, %",
        lambda row: f"seed {row['seed']}",
        (Series("with augmentation (the default)", "with", C_NODE), Series("without", "without", EXACT)),
        rows=_digits,
    ),
    "table-recipe": Table(
        "table-recipe.json",
        "Recipes for large tables: mean of two validation splits",
        "validation accuracy",
        lambda row: f"{row['members']} x {row['epochs']} epochs, decay {row['weight_decay']:g}, average {row['ema']:g}",
        (Series("accuracy", "accuracy_mean", C_NODE),),
    ),
    "fit-time": Table(
        "fit-time.json",
        "Time of a fit",
        "seconds",
        lambda row: f"{row['case']}, {row['rows']:,} rows",
        (Series("first fit", "first_fit_seconds", FAIR_NODE), Series("later fit", "later_fit_seconds", C_NODE)),
        log=True,
    ),
    "first-results": Table(
        "first-results.json",
        "Time of a fit of an estimator",
        "seconds",
        lambda row: row["name"],
        (
            Series("first, empty compilation cache", "empty", FAIR_NODE),
            Series("first, warm cache", "warm", CLASSES[0]),
            Series("later, slowest of five", "later", C_NODE),
        ),
        rows=_first_fits,
    ),
    "latency": Table(
        "latency.json",
        "Latency of a trained model: median of 30 calls",
        "milliseconds",
        lambda row: f"{row['program'].replace('_', ' ')}, {row['rows']} rows",
        (
            Series("exported program", "exported_ms", C_NODE),
            Series("compiled model in charax", "compiled_ms", FAIR_NODE),
            Series("charax predict, a new process", "predict_command_ms", EXACT),
        ),
        log=True,
    ),
    "flux-form": Table(
        "flux-form.json",
        "Burgers' equation from data before its shock",
        "error in percent of the mean |u|",
        _name_fluxes,
        (
            Series("until 0.8, the last time of the data", "error_before_percent", EXACT, "error_before_percent_sd"),
            Series("from 1.0 to 1.8, after the shock", "error_after_percent", CLASSES[4], "error_after_percent_sd"),
        ),
        log=True,
    ),
}


def draw(name: str, results: Path = RESULTS) -> Path:
    """Draw the figure of a table, and link it on the page of the table."""
    table, folder = TABLES[name], results / name
    rows = table.rows(json.loads((folder / table.file).read_text(encoding="utf-8")))
    path = folder / f"{name}.png"
    with save_figure(path, width=7.4, height=1.5 + 0.34 * len(rows)) as figure:
        axes = figure.subplots()
        places = np.arange(len(rows))
        for i, one in enumerate(table.series):
            shift = (i - (len(table.series) - 1) / 2) * min(0.2, 0.7 / len(table.series))
            spread = None if one.spread is None else [row.get(one.spread) or 0.0 for row in rows]
            axes.errorbar(
                [row[one.value] for row in rows],
                places + shift,
                xerr=spread,
                fmt=_MARKERS[i],
                color=one.color,
                label=one.name,
                linewidth=1.2,
                capsize=2,
            )
        axes.set_yticks(places, [table.label(row) for row in rows])
        axes.invert_yaxis()
        axes.set(xlabel=table.axis, title=table.title, xscale="log" if table.log else "linear")
        if len(table.series) > 1:
            figure.legend(loc="outside lower center", ncols=3)
    page = folder / "README.md"
    text = page.read_text(encoding="utf-8")
    if f"]({path.name})" not in text:
        page.write_text(f"{text.rstrip()}\n\n![{table.title}]({path.name})\n", encoding="utf-8")
    return path


def main(tables: tyro.conf.Positional[tuple[str, ...]] = ()) -> None:
    """Draw the figures of recorded tables from their JSON.

    Args:
        tables: Folders of docs/results; all that are known by default.
    """
    for name in tables or TABLES:
        if name not in TABLES:
            raise SystemExit(f"{name} is none of {', '.join(TABLES)}")
        print(draw(name))


if __name__ == "__main__":
    tyro.cli(main)
