"""Characteristic Neural ODEs in JAX."""

from charax._version import __version__
from charax.fields import CharacteristicField, NetworkVelocity, PlainField, SecondOrderField, SeparateJacobian
from charax.models import Classifier, NeuralODE, neural_ode, paper_classifier
from charax.models.flows import ContinuousFlow, ExactTrace, Hutchinson, MultiScaleFlow, vector_flow_field
from charax.nn import count_parameters, mlp
from charax.solve import Solution, SolveError, Solver

__all__ = [
    "CharacteristicField",
    "Classifier",
    "ContinuousFlow",
    "ExactTrace",
    "Hutchinson",
    "MultiScaleFlow",
    "NetworkVelocity",
    "NeuralODE",
    "PlainField",
    "SecondOrderField",
    "SeparateJacobian",
    "Solution",
    "SolveError",
    "Solver",
    "__version__",
    "count_parameters",
    "mlp",
    "neural_ode",
    "paper_classifier",
    "vector_flow_field",
]
