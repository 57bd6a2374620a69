"""Estimators in scikit-learn's manner: arrays in, arrays out."""

from charax.estimators.characteristic import CharacteristicRegressor
from charax.estimators.classifier import CNODEClassifier
from charax.estimators.density import FlowDensity
from charax.estimators.regressor import CNODERegressor

__all__ = ["CNODEClassifier", "CNODERegressor", "CharacteristicRegressor", "FlowDensity"]
