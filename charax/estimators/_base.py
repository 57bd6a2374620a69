"""What all estimators share: solver, training and the warning when training diverges."""

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np
from jaxtyping import Float
from rich.console import Console
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from charax.estimators._ensemble import Ensemble, EnsembleConfig, train_ensemble
from charax.estimators._objectives import AbstractObjective
from charax.estimators._rows import Rows
from charax.solve import Adjoint, SolverName
from charax.train import Lines, LoopConfig, OptimizerConfig, Silent, SolverConfig

ArrayLike = Any
"""Anything that scikit-learn converts to an array: lists, NumPy arrays, data frames. scikit-learn also checks it."""

POSITIVE_INTEGER = Interval(Integral, 1, None, closed="left")
CONSTRAINTS: dict[str, list[Any]] = {
    "width": [POSITIVE_INTEGER],
    "solver": [StrOptions(set(get_args(SolverName)))],
    "steps": [POSITIVE_INTEGER],
    "rtol": [Interval(Real, 0, None, closed="neither"), None],
    "adjoint": [StrOptions(set(get_args(Adjoint)))],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "weight_decay": [Interval(Real, 0, None, closed="left")],
    "max_iter": [POSITIVE_INTEGER],
    "batch_size": [POSITIVE_INTEGER],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 0.5, closed="right")],
    "n_iter_no_change": [POSITIVE_INTEGER],
    "warm_start": ["boolean"],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
"""scikit-learn's validation rules of the parameters that all estimators have."""


_MATCHED_STEPS = 500
"""Steps of flow matching without improvement after which training may stop: the weights that are evaluated are an
average over about a hundred steps, whose log-likelihood may fall before it rises."""


_STEPS_PER_EVALUATION = 60
"""Steps of flow matching that take as long as an evaluation of the validation rows, roughly."""


def patience_of_matching(epochs: int, steps: int) -> int:
    """The number of epochs without improvement after which flow matching stops.

    Args:
        epochs: The least number of epochs.
        steps: The number of steps per epoch.

    Returns:
        As many epochs as that, or more if they have too few steps.
    """
    return max(epochs, -(-_MATCHED_STEPS // steps))


def epochs_per_evaluation_of_matching(steps: int) -> int:
    """The number of epochs of flow matching after which the log-likelihood is evaluated, which takes a solve.

    Args:
        steps: The number of steps per epoch.

    Returns:
        One, or more if they have few steps.
    """
    return max(1, _STEPS_PER_EVALUATION // steps)


class AbstractEstimator(BaseEstimator, metaclass=ABCMeta):
    """An estimator that is an ensemble of models, of one or more members."""

    solver: str
    steps: int
    rtol: float | None
    adjoint: Any
    learning_rate: float
    weight_decay: Any
    max_iter: Any
    batch_size: Any
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: Any
    warm_start: bool
    random_state: Any
    verbose: int | bool
    n_features_in_: int
    ensemble_: Ensemble

    @abstractmethod
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> Any:
        """Fit the model to data."""

    def _solver_config(self) -> SolverConfig:
        if self.rtol is None:
            return SolverConfig(self.solver, steps=self.steps, adjoint=self.adjoint)
        if self.solver == "euler":
            raise ValueError(
                "The 'rtol' parameter needs a solver with an error estimate, which 'euler' does not have: choose "
                "another 'solver', or set rtol=None to take fixed steps."
            )
        return SolverConfig(self.solver, rtol=self.rtol, adjoint=self.adjoint)

    def _check_X(self, X: ArrayLike) -> Float[np.ndarray, "rows features"]:
        """Check that the estimator is fitted, and that X has the columns that it was fitted to."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _ema(self, rows: int) -> float | None:
        """The decay of the average of the weights that is evaluated, for this many rows; None for no average."""
        return None

    def _is_warm_start(self) -> bool:
        """Whether `fit` continues from the last one."""
        return self.warm_start and hasattr(self, "ensemble_")

    def _weight_decay(self, rows: int) -> float:
        """The weight decay for this many rows."""
        return self.weight_decay

    def _loop_length(self, rows: int) -> tuple[int, int]:
        """The maximum number of epochs and the size of a mini-batch for this many rows."""
        return self.max_iter, self.batch_size

    def _patience(self, steps: int) -> int:
        """The number of epochs without improvement after which training stops, if each has this many steps."""
        return self.n_iter_no_change

    def _epochs_per_evaluation(self, steps: int) -> int:
        """The number of epochs between two evaluations, if each has this many steps."""
        return 1

    def _fit_ensemble(
        self, objective: AbstractObjective, rows: Rows, *, members: int, others: Iterable[Any] = ()
    ) -> None:
        """Train; with other objectives, keep the one with the lowest loss of the validation rows."""
        initial_params = None
        if self._is_warm_start():
            if self.ensemble_.objective != objective or len(self.ensemble_.params) != members:
                raise ValueError(
                    "warm_start=True continues with the model of the last fit, but these data or parameters need a "
                    "different model: fit a clone of this estimator instead."
                )
            initial_params = self.ensemble_.params
        epochs, batch_size = self._loop_length(len(rows.weights))
        fraction = self.validation_fraction if self.early_stopping else None
        steps = -(-round(len(rows.weights) * (1 - (fraction or 0))) // batch_size)
        every = min(self._epochs_per_evaluation(steps), epochs)
        config = EnsembleConfig(
            members=members,
            validation_fraction=fraction,
            passes=every,
            loop=LoopConfig(
                epochs=epochs // every,
                batch_size=batch_size,
                seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
                patience=-(-self._patience(steps) // every) if self.early_stopping else None,
            ),
            optimizer=OptimizerConfig(
                learning_rate=self.learning_rate,
                weight_decay=self._weight_decay(len(rows.weights)),
                schedule="constant",
                ema=self._ema(len(rows.weights)),
            ),
        )
        progress = Lines(Console()) if self.verbose else Silent()
        trained = [train_ensemble(each, rows, config, progress, initial_params) for each in (objective, *others)]
        self.ensemble_ = min(trained, key=lambda ensemble: ensemble.best_loss)
        self.n_iter_ = every * len(self.ensemble_.losses)
        self.loss_curve_ = self.ensemble_.losses
        self.best_loss_ = self.ensemble_.best_loss
        if self.ensemble_.diverged:
            warnings.warn(
                f"Training diverged in iteration {self.n_iter_}: the loss or its gradient was not finite. The best "
                "weights so far are kept. Lower learning_rate, raise steps, or look for extreme values in X.",
                ConvergenceWarning,
                stacklevel=3,
            )


def check_sample_weight(sample_weight: ArrayLike, X: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows"]:
    """Check that the weights are non-negative and not all zero; one for each row if there are none."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights
