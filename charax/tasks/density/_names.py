"""Names of the parts of flow matching, for the command line."""

from typing import Literal

Objective = Literal["likelihood", "matching", "matching+likelihood"]
PathName = Literal["linear", "variance-preserving", "cosine"]
CouplingName = Literal["independent", "ot"]
TimesName = Literal["uniform", "logit-normal", "data"]
PixelsName = Literal["quantiles", "whitened", "logit"]
