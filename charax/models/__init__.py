"""Things with parameters that map data to outputs."""

from charax.models.classifier import Classifier
from charax.models.lift import AbstractLift, Identity, InputLayer, PositionVelocity, ZeroAugment
from charax.models.methods import METHOD_NAMES, Method, neural_ode, parse_method
from charax.models.neural_ode import NeuralODE
from charax.models.paper import DATASETS, count_table, paper_classifier, paper_solver

__all__ = [
    "DATASETS",
    "METHOD_NAMES",
    "AbstractLift",
    "Classifier",
    "Identity",
    "InputLayer",
    "Method",
    "NeuralODE",
    "PositionVelocity",
    "ZeroAugment",
    "count_table",
    "neural_ode",
    "paper_classifier",
    "paper_solver",
    "parse_method",
]
