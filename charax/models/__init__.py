"""Things with parameters that map data to outputs."""

from charax.models.architecture import AbstractArchitecture
from charax.models.classifier import Classifier
from charax.models.density import AbstractDensity, Assessed
from charax.models.equation_regressor import EquationRegressor, Part
from charax.models.flow import Carried, ContinuousFlow
from charax.models.flow_designs import (
    PAPER_FLOW_SOLVER,
    PAPER_FLOWS,
    AbstractFlowDesign,
    FlowMethod,
    ImageFlowDesign,
    VectorFlowDesign,
    paper_flow_design,
    read_flow_design,
)
from charax.models.flow_fields import image_flow_field, vector_flow_field
from charax.models.forecaster import Forecast, Forecaster, ForecasterDesign, ForecastMethod
from charax.models.images import ImageArchitecture
from charax.models.lift import AbstractLift, Identity, InputLayer, PositionVelocity, ZeroAugment
from charax.models.methods import METHOD_NAMES, Jacobian, Method, neural_ode, parse_method
from charax.models.multiscale import MultiScaleFlow, Passed, plan_scales
from charax.models.neural_ode import NeuralODE
from charax.models.paper import DATASETS, count_table, paper_architecture, paper_classifier, paper_solver
from charax.models.path_regressor import Direction, PathRegressor, PathVelocity
from charax.models.pixels import Pixels, squeeze, unsqueeze
from charax.models.presets import Design, Preset, find_design, read_architecture
from charax.models.regressor import AbstractRegressor, Regressed, TimeRegressor
from charax.models.scaling import Scaling
from charax.models.traces import AbstractTrace, ExactTrace, Hutchinson, HutchPlusPlus
from charax.models.vectors import VectorArchitecture

__all__ = [
    "DATASETS",
    "METHOD_NAMES",
    "PAPER_FLOWS",
    "PAPER_FLOW_SOLVER",
    "AbstractArchitecture",
    "AbstractDensity",
    "AbstractFlowDesign",
    "AbstractLift",
    "AbstractRegressor",
    "AbstractTrace",
    "Assessed",
    "Carried",
    "Classifier",
    "ContinuousFlow",
    "Design",
    "Direction",
    "EquationRegressor",
    "ExactTrace",
    "FlowMethod",
    "Forecast",
    "ForecastMethod",
    "Forecaster",
    "ForecasterDesign",
    "HutchPlusPlus",
    "Hutchinson",
    "Identity",
    "ImageArchitecture",
    "ImageFlowDesign",
    "InputLayer",
    "Jacobian",
    "Method",
    "MultiScaleFlow",
    "NeuralODE",
    "Part",
    "Passed",
    "PathRegressor",
    "PathVelocity",
    "Pixels",
    "PositionVelocity",
    "Preset",
    "Regressed",
    "Scaling",
    "TimeRegressor",
    "VectorArchitecture",
    "VectorFlowDesign",
    "ZeroAugment",
    "count_table",
    "find_design",
    "image_flow_field",
    "neural_ode",
    "paper_architecture",
    "paper_classifier",
    "paper_flow_design",
    "paper_solver",
    "parse_method",
    "plan_scales",
    "read_architecture",
    "read_flow_design",
    "squeeze",
    "unsqueeze",
    "vector_flow_field",
]
