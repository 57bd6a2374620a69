"""What all estimators share: how they integrate, how they train, and what they say when training fails."""

import warnings
from abc import ABCMeta, abstractmethod
from numbers import Integral, Real
from typing import Any

import numpy as np
from jaxtyping import Float
from rich.console import Console
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from charax.estimators._members import Plan, Trained, train_members
from charax.estimators._objectives import AbstractObjective, How
from charax.estimators._rows import Rows
from charax.solve._methods import METHODS
from charax.train import OptimizerConfig
from charax.train._progress import Lines, Silent

Table = Any
"""Anything that scikit-learn takes for an array: lists, NumPy arrays, data frames. It is left to check them, too."""

_POSITIVE = Interval(Integral, 1, None, closed="left")
CONSTRAINTS: dict[str, list[Any]] = {
    "solver": [StrOptions(set(METHODS))],
    "steps": [_POSITIVE],
    "rtol": [Interval(Real, 0, None, closed="neither"), None],
    "adjoint": [StrOptions({"checkpoint", "backsolve", "direct"})],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "weight_decay": [Interval(Real, 0, None, closed="left")],
    "max_iter": [_POSITIVE],
    "batch_size": [_POSITIVE],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 0.5, closed="right")],
    "n_iter_no_change": [_POSITIVE],
    "warm_start": ["boolean"],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "width": [_POSITIVE],
}
"""What the parameters that the estimators share may be, in scikit-learn's own terms."""


class AbstractTrainedEstimator(BaseEstimator, metaclass=ABCMeta):
    """An estimator whose weights are found by the step of the training loop."""

    solver: str
    steps: int
    rtol: float | None
    adjoint: str
    learning_rate: float
    weight_decay: float
    max_iter: int
    batch_size: int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    warm_start: bool
    random_state: Any
    verbose: int | bool
    n_features_in_: int
    trained_: Trained

    @abstractmethod
    def fit(self, X: Table, y: Table, sample_weight: Table = None) -> Any:
        """Learn from rows."""

    def _how(self) -> How:
        return How(self.solver, self.steps, self.rtol, self.adjoint)

    def _check(self, X: Table) -> Float[np.ndarray, "rows features"]:
        """Rows to be asked about, like those that were learned from."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _goes_on(self) -> bool:
        """Whether a fit begins where the last one ended."""
        return self.warm_start and hasattr(self, "trained_")

    def _train(self, objective: AbstractObjective, rows: Rows, *, members: int) -> None:
        before = None
        if self._goes_on():
            if self.trained_.objective != objective or len(self.trained_.parameters) != members:
                raise ValueError(
                    "warm_start=True goes on with the model of the last fit, and these data or parameters need another "
                    "one: fit a clone of this estimator"
                )
            before = self.trained_.parameters
        plan = Plan(
            members=members,
            epochs=self.max_iter,
            batch_size=self.batch_size,
            validation_fraction=self.validation_fraction if self.early_stopping else None,
            patience=self.n_iter_no_change if self.early_stopping else self.max_iter,
            optimizer=OptimizerConfig(
                learning_rate=self.learning_rate, weight_decay=self.weight_decay, schedule="constant"
            ),
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            progress=Lines(Console()) if self.verbose else Silent(),
        )
        self.trained_ = train_members(objective, rows, plan, before)
        self.n_iter_ = len(self.trained_.losses)
        self.loss_curve_ = self.trained_.losses
        self.best_loss_ = self.trained_.best_loss
        if self.trained_.diverged:
            warnings.warn(
                f"Training diverged in iteration {self.n_iter_}: the loss or its gradient was not finite. The best "
                "weights up to then are kept. Lower learning_rate, raise steps, or look for extreme values in X.",
                ConvergenceWarning,
                stacklevel=3,
            )


def check_weights(sample_weight: Table, X: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows"]:
    """One weight a row, and not all of them zero."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights
