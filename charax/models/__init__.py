"""Things with parameters that map data to outputs."""

from charax.models.architecture import AbstractArchitecture
from charax.models.classifier import Classifier
from charax.models.equation_regressor import EquationRegressor, Part
from charax.models.forecaster import Forecast, Forecaster, ForecasterDesign, ForecastMethod
from charax.models.images import ImageArchitecture
from charax.models.lift import AbstractLift, Identity, InputLayer, PositionVelocity, ZeroAugment
from charax.models.methods import METHOD_NAMES, Method, neural_ode, parse_method
from charax.models.neural_ode import NeuralODE
from charax.models.paper import DATASETS, count_table, paper_architecture, paper_classifier, paper_solver
from charax.models.path_regressor import Direction, PathRegressor, PathVelocity
from charax.models.presets import Design, Preset, find_design, read_architecture
from charax.models.regressor import AbstractRegressor, Regressed, TimeRegressor
from charax.models.scaling import Scaling
from charax.models.vectors import VectorArchitecture

__all__ = [
    "DATASETS",
    "METHOD_NAMES",
    "AbstractArchitecture",
    "AbstractLift",
    "AbstractRegressor",
    "Classifier",
    "Design",
    "Direction",
    "EquationRegressor",
    "Forecast",
    "ForecastMethod",
    "Forecaster",
    "ForecasterDesign",
    "Identity",
    "ImageArchitecture",
    "InputLayer",
    "Method",
    "NeuralODE",
    "Part",
    "PathRegressor",
    "PathVelocity",
    "PositionVelocity",
    "Preset",
    "Regressed",
    "Scaling",
    "TimeRegressor",
    "VectorArchitecture",
    "ZeroAugment",
    "count_table",
    "find_design",
    "neural_ode",
    "paper_architecture",
    "paper_classifier",
    "paper_solver",
    "parse_method",
    "read_architecture",
]
