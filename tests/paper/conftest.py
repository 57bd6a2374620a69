"""Models that compile in a second: what is tested is the experiment around them."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from charax.estimators import FlowRegressor
from charax.models import VectorFlowDesign
from charax.paper import table2, tabular, uci
from charax.solve import Solver
from charax.tasks import DensityConfig
from charax.tasks.density._designs import preset_design
from charax.train import Run, SolverConfig

pytest.register_assert_rewrite("tests.paper.claims")


@pytest.fixture(scope="module")
def small_models() -> Iterator[list[str]]:
    """Narrow flows, one Euler step per solve, and no figures of single runs; gives the names of the runs to plot."""
    plotted: list[str] = []
    step = Solver("euler", steps=1)

    def small_preset(config: DensityConfig, levels: int | None):
        return preset_design(config, levels) if levels else (VectorFlowDesign(config.method, width=4), step)

    def plot(run: Run) -> list[Path]:
        plotted.append(run.folder.name)
        return []

    smoke = table2.SETTINGS["smoke"]._replace(
        cases=(table2.Case("digits", 1, 512, shrink=2, width=2),), solver=SolverConfig(solver="euler", steps=1)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("charax.tasks.density._config.preset_design", small_preset)
        patch.setattr(table2, "SETTINGS", {"smoke": smoke})
        patch.setattr(tabular, "COPIES", 1)
        small = {"width": 4, "solver": "euler", "steps": 1, "rtol": None}
        build = lambda *args, **kwargs: FlowRegressor(*args, **kwargs).set_params(**small)
        patch.setattr(uci, "estimators", SimpleNamespace(FlowRegressor=build))
        patch.setattr(tabular, "solve", SimpleNamespace(Solver=lambda *_, **__: step))
        patch.setattr("charax.paper._separation_training._SOLVER", step)
        patch.setattr(Run, "plot", plot)
        yield plotted
