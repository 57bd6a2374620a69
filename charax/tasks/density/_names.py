"""Names of the parts of flow matching, for the command line."""

from typing import Literal

Objective = Literal["likelihood", "matching", "matching+likelihood"]
PathName = Literal["linear", "variance-preserving", "cosine"]
CouplingName = Literal["independent", "ot"]
TimesName = Literal["uniform", "logit-normal", "data"]
PixelsName = Literal["quantiles", "whitened", "logit"]
EXACT_UP_TO = 16
"""Dimension up to which densities are evaluated with the exact trace, however they were trained."""
