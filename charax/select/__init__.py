"""Choosing the number k of characteristic dimensions: sweeps over k, and what validation, AIC and BIC pick."""

from charax.select.criteria import Criterion, aic, bic, pick
from charax.select.sweep import Selection, Tried, select_dimension

__all__ = ["Criterion", "Selection", "Tried", "aic", "bic", "pick", "select_dimension"]
