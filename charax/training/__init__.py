"""The one training loop: settings, steps, checkpoints, runs, exported models."""

from charax.training.classification import ClassificationTask
from charax.training.classify import ClassifySettings
from charax.training.density import DensityTask
from charax.training.devices import Devices
from charax.training.estimate import DensitySettings
from charax.training.export import Trained, load_model, save_model
from charax.training.forecast import ForecastSettings
from charax.training.forecasting import ForecastTask
from charax.training.loop import Fitted, fit
from charax.training.naming import name_arrays
from charax.training.pde import PdeSettings
from charax.training.process import small_products, tune_process
from charax.training.progress import AbstractProgress, Lines, Live, Silent, make_progress
from charax.training.regression import RegressionMethod, RegressionTask
from charax.training.run import (
    Run,
    evaluate,
    is_finished,
    load_run,
    load_settings,
    name_run,
    predict,
    resume,
    sample,
    train,
)
from charax.training.seeds import spread, train_seeds
from charax.training.settings import LoopSettings, OptimiserSettings, SolverSettings, from_json, to_json
from charax.training.stopping import Diverged, Interrupted
from charax.training.task import AbstractTask, Batch, Predictions, Problem, Samples, Settings
from charax.training.vector import flatten_model

__all__ = [
    "AbstractProgress",
    "AbstractTask",
    "Batch",
    "ClassificationTask",
    "ClassifySettings",
    "DensitySettings",
    "DensityTask",
    "Devices",
    "Diverged",
    "Fitted",
    "ForecastSettings",
    "ForecastTask",
    "Interrupted",
    "Lines",
    "Live",
    "LoopSettings",
    "OptimiserSettings",
    "PdeSettings",
    "Predictions",
    "Problem",
    "RegressionMethod",
    "RegressionTask",
    "Run",
    "Samples",
    "Settings",
    "Silent",
    "SolverSettings",
    "Trained",
    "evaluate",
    "fit",
    "flatten_model",
    "from_json",
    "is_finished",
    "load_model",
    "load_run",
    "load_settings",
    "make_progress",
    "name_arrays",
    "name_run",
    "predict",
    "resume",
    "sample",
    "save_model",
    "small_products",
    "spread",
    "to_json",
    "train",
    "train_seeds",
    "tune_process",
]
