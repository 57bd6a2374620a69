"""The paper's tables and figures: one module each, and one line each here."""

from collections.abc import Mapping
from types import MappingProxyType

from charax.paper._experiment import AbstractExperiment
from charax.paper._report import Column, Report
from charax.paper.ablation import Ablation
from charax.paper.equations import Equations
from charax.paper.forecasts import Forecasts
from charax.paper.irregular import Irregular
from charax.paper.kinetic import Kinetic
from charax.paper.pde import PDE
from charax.paper.propositions import Propositions
from charax.paper.separations import Separations
from charax.paper.table1 import Table1
from charax.paper.table2 import Table2
from charax.paper.tabular import Tabular
from charax.paper.timeseries import Timeseries
from charax.paper.toy_flow import ToyFlow
from charax.paper.uci import UCI

EXPERIMENTS: Mapping[str, type[AbstractExperiment]] = MappingProxyType(
    {
        experiment.name: experiment
        for experiment in (
            Propositions,
            Separations,
            Table1,
            ToyFlow,
            Tabular,
            UCI,
            Kinetic,
            Table2,
            PDE,
            Equations,
            Timeseries,
            Forecasts,
            Irregular,
            Ablation,
        )
    }
)
"""Everything that `charax reproduce` knows, by name."""

__all__ = ["EXPERIMENTS", "AbstractExperiment", "Column", "Report"]
