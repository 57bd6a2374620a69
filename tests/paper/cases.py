"""How every experiment is called in a test, and what it leaves. A new experiment needs a case."""

import io
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from charax.cli import main


class Case(NamedTuple):
    """How an experiment is called, and what it leaves. Scripts rely on the keys: none may be lost or renamed."""

    flags: str
    rows: int
    keys: str
    record: str = ""
    """Keys of NAME.json in addition to those of the answer."""
    answer: str = "rows"
    figures: str = ""
    plotted: str = ""
    """Runs that get figures of their own."""
    other: str = "--epochs 2"
    """Another setting, which does not fit the runs in the folder."""


CASES = {
    "propositions": Case(
        "",
        0,
        "",
        answer="intersecting homeomorphism characteristics log_density",
        figures="intersecting.png intersecting.svg homeomorphism.png characteristics.png log_density.png",
        other="",
    ),
    "separations": Case(
        "--problem swap --variant c-node-k2-u0 --seeds 1 --steps 2 --points 10",
        1,
        "problem method k reads_u0 error_mean error_sd nfe parameters seconds variant",
        record="seeds steps points panels",
        figures="separations.png",
        other="--steps 3",
    ),
    "table1": Case(
        "--budget smoke --method c-node --epochs 1",
        1,
        "dataset method parameters accuracy_mean accuracy_sd nfe seconds parameters_paper accuracy_paper nfe_paper",
        record="budget changed dynamics",
        figures="training-dynamics.png",
    ),
    "toy-flow": Case(
        "--iterations 2 --seeds 1",
        2,
        "dataset method parameters nll_mean nll_sd nfe seconds",
        record="recipe data iterations dynamics",
        figures="toy-flow.png",
        plotted="density-circles-c-node-seed0 density-circles-node-seed0",
        other="--iterations 3",
    ),
    "tabular": Case(
        "--table iris --seeds 1 --epochs 1",
        1,
        "dataset dimensions method parameters log_likelihood_mean log_likelihood_sd log_likelihood_gaussian "
        "log_likelihood_kernel nfe seconds better_or_equal",
        record="seeds",
    ),
    "uci": Case(
        "--dataset yacht --splits 1 --members 1 --epochs 1",
        1,
        "dataset method log_likelihood_mean log_likelihood_sd log_likelihood_mc_dropout log_likelihood_linear "
        "rmse_mean pinball_mean pinball_forest splits seconds",
        record="method members splits",
    ),
    "kinetic": Case(
        "--data POINTS --epochs 1 --seeds 1",
        2,
        "dataset method parameters nll_mean nll_sd nfe seconds kinetic nll_ratio nfe_ratio",
        record="sharpness dynamics",
        figures="kinetic.png",
    ),
    "table2": Case(
        "--budget smoke --method c-node",
        1,
        "dataset method parameters bits_per_dim_mean bits_per_dim_sd nfe seconds bits_per_dim_paper nfe_paper "
        "parameters_paper",
        record="budget changed dynamics",
        figures="table2.png",
        plotted="density-digits-by2-c-node-seed0",
    ),
    "pde": Case(
        "--budget smoke --method node-fair --epochs 1",
        1,
        "problem method parameters deviation_percent_mean deviation_percent_sd deviation_percent_paper "
        "extrapolation_percent_mean extrapolation_percent_sd extrapolation_lost_percent seconds",
        record="budget",
        figures="deviations.png",
        plotted="pde-paper-node-fair-seed0",
    ),
    "equations": Case(
        "--budget smoke --method mlp --epochs 1",
        1,
        "problem noise method points error_inside_percent error_inside_percent_sd error_beyond_percent "
        "error_beyond_percent_sd coefficient_error_percent right_terms lost_percent coverage coverage_solution "
        "coverage_velocity coverage_source coverage_shock_time equation parameters seconds cpu_seconds",
        record="budget seeds",
        figures="equations.png",
    ),
    "timeseries": Case(
        "--method node-fair --seeds 1 --epochs 1",
        6,
        "method interval parameters deviation_percent_mean deviation_percent_sd deviation_percent_paper "
        "deviation_percent_floor seconds",
        record="floor_percent",
        figures="intervals.png",
        plotted="forecast-paper-node-fair-seed0",
    ),
    "forecasts": Case(
        "--dataset indometh-times --seeds 1 --epochs 1",
        3,
        "dataset method seeds scaled_rmse_mean scaled_rmse_sd covered_mean covered_sd parameters seconds",
        record="seeds",
        figures="forecasts.png",
    ),
    "irregular": Case(
        "--dataset BasicMotions --method gru --dropped-percent 30 --seeds 1 --epochs 1",
        1,
        "dataset method dropped_percent seeds accuracy_mean accuracy_sd validation_accuracy_mean nfe parameters "
        "seconds compile_seconds",
        record="seeds",
        figures="irregular.png",
    ),
    "ablation": Case(
        "--k 1 2 --epochs 1",
        2,
        "dataset k parameters accuracy_mean accuracy_sd validation_mean validation_sd train_loss train_loss_sd "
        "test_loss test_loss_sd aic bic seconds",
        answer="rows picked",
        figures="ablation.png",
    ),
}


class Called(NamedTuple):
    status: int
    out: str
    err: str


def call(*arguments: object) -> Called:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        status = main([str(argument) for argument in arguments])
    return Called(status, out.getvalue(), err.getvalue())


def write_motions(folder: Path) -> None:
    """A small stand-in for BasicMotions, where an experiment looks for it."""
    generator = np.random.default_rng(0)
    for part in ("TRAIN", "TEST"):
        rows = [f"{','.join(map(str, generator.normal(size=4)))}:{i % 2}" for i in range(8)]
        (folder / "uea").mkdir(exist_ok=True)
        (folder / "uea" / f"BasicMotions_{part}.ts").write_text("\n".join(["@classLabel true 0 1", "@data", *rows]))


def write_concentrations(folder: Path) -> None:
    """A small stand-in for indometh.csv, where an experiment looks for it."""
    times = 0.25 * np.arange(1, 8) ** 1.5
    rows = [f"{name},{t:.3f},{(2 + name) * np.exp(-t / (1 + name)):.4f}" for name in range(4) for t in times]
    (folder / "series").mkdir(exist_ok=True)
    (folder / "series" / "indometh.csv").write_text("\n".join(["series,time,conc", *rows]))


def reproduce(name: str, folder: Path) -> tuple[list[str], Called]:
    points = folder / "points.npz"
    np.savez(points, x=np.random.default_rng(0).normal(size=(80, 2)))
    flags = [
        "reproduce",
        name,
        *CASES[name].flags.replace("POINTS", str(points)).split(),
        "--output",
        str(folder / "r"),
    ]
    if name != "uci":
        return flags, call(*flags, "--json")
    write_uci(folder / "uci" / "yacht.npz")
    with patch.dict(os.environ, {"CHARAX_DATA": str(folder)}):
        return flags, call(*flags, "--json")


def write_uci(path: Path) -> None:
    """A file as those of the UCI data: a line with noise of standard deviation 0.5, and two splits of 8 and 7 rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    x = random.normal(size=(80, 6))
    test = np.concatenate([np.arange(15), [-1]]).reshape(2, 8).astype(np.int32)
    np.savez(path, x=x, y=3 * x[:, 0] + 0.5 * random.normal(size=80), test=test)
