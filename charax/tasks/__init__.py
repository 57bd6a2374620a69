"""What can be learned: one folder per task, and one line per task here."""

from charax.tasks.classification._config import ClassificationConfig
from charax.tasks.density._config import DensityConfig
from charax.tasks.forecast._config import ForecastConfig
from charax.tasks.pde._config import PDEConfig
from charax.tasks.regression._config import RegressionConfig
from charax.tasks.series._config import SeriesConfig
from charax.train import register_task

for _config in (ClassificationConfig, RegressionConfig, DensityConfig, PDEConfig, ForecastConfig, SeriesConfig):
    register_task(_config)

__all__ = ["ClassificationConfig", "DensityConfig", "ForecastConfig", "PDEConfig", "RegressionConfig", "SeriesConfig"]
