"""A setting that would do nothing with the data and the other settings is refused, in every task."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from charax import (
    AbstractConfig,
    ClassificationConfig,
    DensityConfig,
    ForecastConfig,
    PDEConfig,
    RegressionConfig,
    SeriesConfig,
    SolverConfig,
)
from charax.train import refuse_unused

ADJOINT, STEPS = SolverConfig(adjoint="backsolve"), SolverConfig(steps=3)
TOY, MATCHED = DensityConfig(points=50), DensityConfig(points=50, objective="matching")
TRANSPORT = DensityConfig(data="moons", source="circles", points=50, objective="matching")
TURNS = SeriesConfig(width=4)
WINDOWS = ForecastConfig(data="pendulum", history=3, horizon=2)

REFUSED: list[tuple[AbstractConfig, dict, str]] = [
    (ClassificationConfig(method="node"), {"characteristic_dim": 3}, "characteristic_dim: node has no character"),
    (ClassificationConfig(method="anode"), {"jacobian": "joint"}, "jacobian: anode has no characteristics"),
    (ClassificationConfig(), {"augment_dim": 3}, "augment_dim: c-node adds no channels"),
    (ClassificationConfig(), {"separator": ";"}, "separator: only text files"),
    (ClassificationConfig(), {"target": "species"}, "target: digits has no named columns"),
    (RegressionConfig(method="il-node"), {"characteristic_dim": 3}, "characteristic_dim: il-node has no character"),
    (RegressionConfig(method="node"), {"augment_dim": 3}, "augment_dim: node adds no channels"),
    (RegressionConfig(), {"separator": ";"}, "separator: only text files"),
    (DensityConfig(points=50, method="node"), {"characteristic_dim": 3}, "characteristic_dim: a node has no"),
    (TOY, {"separator": ";"}, "separator: only text files"),
    (TOY, {"shrink": 2}, "shrink: only images"),
    (TOY, {"frequency_scale": 3.0}, "frequency_scale: the flow has no frequencies: add --frequencies"),
    (MATCHED, {"frequencies": 0, "frequency_scale": 3.0}, "frequency_scale: the flow has no frequencies"),
    (TOY, {"probes": 4}, "probes: only hutchinson and gaussian"),
    (MATCHED, {"trace": "hutchinson", "probes": 4}, "trace, probes: flow matching needs no trace"),
    (MATCHED, {"solver": ADJOINT}, "adjoint: flow matching takes no gradient of a solve"),
    (TRANSPORT, {"solver": ADJOINT}, "adjoint: flow matching takes no gradient of a solve"),
    (TRANSPORT, {"shrink": 3}, "shrink: only images"),
    (DensityConfig(data="digits"), {"points": 77}, "points: they are those of a toy"),
    (PDEConfig(), {"terms": ("exp(u)",), "flux": "convex"}, "terms, flux: only a learned equation"),
    (PDEConfig(method="mlp"), {"refine": False}, "refine: only a learned equation"),
    (PDEConfig(method="equation", refine=False), {"terms": ("exp(u)",)}, "terms: without --refine"),
    (PDEConfig(method="mlp"), {"solver": STEPS}, "steps: an mlp integrates nothing"),
    (PDEConfig(), {"until": 0.5}, "until: the problem paper is sampled at all"),
    (TURNS, {"characteristic_dim": 7}, "characteristic_dim: cde has none: choose hybrid or c-node"),
    (TURNS, {"depth": 1}, "depth: only log-signatures have a depth: add --windows"),
    (TURNS, {"separator": ";"}, "separator: only text files"),
    (TURNS, {"series": "id", "time": "day"}, "series, time: turns has no named columns"),
    (replace(TURNS, method="gru"), {"state_dim": 9}, "state_dim: gru has none"),
    (replace(TURNS, method="gru"), {"no_counts": True, "windows": 3}, "no_counts, windows: gru has none: choose cde"),
    (
        replace(TURNS, method="node"),
        {"interpolation": "natural", "state_only": True},
        "interpolation, state_only: node",
    ),
    (replace(TURNS, method="c-node"), {"readout": "last", "summary_start": True}, "readout, summary_start: c-node"),
    (WINDOWS, {"augment_dim": 3, "points": 90}, "augment_dim, points: forecasts from past observations"),
    (WINDOWS, {"method": "node-fair", "characteristic_dim": 3}, "characteristic_dim: node-fair has no character"),
    (WINDOWS, {"transform": "log"}, "transform: every column may be negative"),
    (WINDOWS, {"time": "day"}, "time: pendulum has no named columns"),
    (ForecastConfig(), {"latent": True, "start": "last", "folds": 3}, "folds, start, latent: only forecasts from past"),
]
"""A config, a change that does nothing, and what is said of it."""

USED: list[tuple[AbstractConfig, dict]] = [
    (ClassificationConfig(method="anode+c-node"), {"characteristic_dim": 3, "jacobian": "joint", "augment_dim": 3}),
    (RegressionConfig(method="2nd-order+c-node"), {"characteristic_dim": 3, "augment_dim": 3}),
    (TOY, {"characteristic_dim": 3, "frequencies": 4, "frequency_scale": 3.0, "trace": "hutchinson", "probes": 4}),
    (TOY, {"solver": ADJOINT}),
    (MATCHED, {"frequency_scale": 3.0, "objective": "matching+likelihood", "solver": ADJOINT, "trace": "hutch++"}),
    (TRANSPORT, {"points": 60, "evaluated": 5}),
    (DensityConfig(data="digits"), {"shrink": 2, "probes": 4}),
    (PDEConfig(method="equation"), {"terms": ("exp(u)",), "flux": "convex", "noise": 0.1, "solver": STEPS}),
    (TURNS, {"state_dim": 9, "interpolation": "natural", "windows": 3, "depth": 1, "readout": "last"}),
    (replace(TURNS, method="hybrid"), {"characteristic_dim": 7}),
    (replace(TURNS, method="gru"), {"readout": "last", "summary_start": True}),
    (WINDOWS, {"characteristic_dim": 3, "latent": True, "folds": 2}),
    (ForecastConfig(), {"augment_dim": 3, "points": 90}),
]
"""A config, and a change that does something."""


@pytest.mark.parametrize(("base", "change", "words"), REFUSED)
def test_what_would_do_nothing_is_refused(base, change, words):
    config = replace(base, **change)
    with pytest.raises(ValueError, match=f"^{words}"):
        refuse_unused(config, config.unused(config.load_data()))


@pytest.mark.parametrize(("base", "change"), USED)
def test_what_does_something_is_not_refused(base, change):
    config = replace(base, **change)
    refuse_unused(config, config.unused(config.load_data()))


def test_settings_of_files_are_refused_by_the_kind_of_file(tmp_path):
    rows = np.random.default_rng(0).uniform(size=(60, 3)).round(3)
    table, arrays = tmp_path / "table.csv", tmp_path / "arrays.npz"
    table.write_text("x,t,u\n" + "\n".join(",".join(map(str, row)) for row in rows))
    np.savez(arrays, x=rows[:, 0], t=rows[:, 1], u=rows[:, 2])

    def refused(config) -> str:
        try:
            refuse_unused(config, config.unused(config.load_data()))
        except ValueError as error:
            return str(error)
        return ""

    assert "noise is added to built-in problems only" in refused(PDEConfig(data=str(table), noise=0.1))
    assert "all samples of a table are used" in refused(PDEConfig(data=str(table), points=50))
    assert refused(PDEConfig(data=str(arrays), until=0.5)) == ""
    assert "they are those of a toy" in refused(DensityConfig(data=str(table), points=50))
    assert refused(DensityConfig(data=str(table), separator=",")) == ""


def test_training_refuses_before_anything_is_written(refuse, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refuse("train", "classify", "--method", "node", "--characteristic-dim", "3")
    assert "characteristic_dim: node has no characteristics: choose a C-NODE, or leave it out" in said
    assert not list(Path(tmp_path).iterdir())
