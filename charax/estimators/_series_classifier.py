"""Classification of whole series."""

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, get_args

import numpy as np
from jaxtyping import Float, Shaped
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from charax.data import Standardizer
from charax.estimators._base import CONSTRAINTS, POSITIVE_INTEGER, AbstractEstimator, ArrayLike
from charax.estimators._rows import Rows
from charax.estimators._series_objective import SeriesObjective
from charax.estimators._series_rows import SeriesArrays
from charax.fields import Interpolation
from charax.models import SeriesDesign, SeriesMethod


class SeriesClassifier(ClassifierMixin, AbstractEstimator):
    """A classifier of whole series: a neural controlled differential equation along each series.

    Series may have irregular times, missing values (NaN) and different lengths. Channels are standardized over all
    observed values. Times count from the first observation, in units of the mean duration of the training series.

    Args:
        method ({"cde", "hybrid", "c-node", "node", "gru"}, default="cde"): "cde": along the observed path. "c-node":
            learned directions that read a summary of the series. "hybrid": the observed directions and the learned
            ones. "node": from the first observations only. "gru": a recurrent network that sees the time gaps.
        width (int, default=32): The width of the hidden layers; the size of the state of "gru".
        state_dim (int, default=16): The size of the state of all methods but "gru".
        characteristic_dim (int, default=4): The number of learned directions of "hybrid" and "c-node".
        interpolation ({"hermite", "natural", "linear", "rectilinear"}, default="hermite"): The path of "cde" and
            "hybrid". "hermite" and "rectilinear" never look ahead.
        counts (bool, default=True): Whether the path also counts the observations of each channel.
        drop_augmentation (float, default=0.7): In every mini-batch up to this fraction of the observations of each
            series is dropped at random.
        members (int, default=1): The number of models in the ensemble. Predictions are averaged over the members.
        solver ({"euler", "midpoint", "bosh3"}, default="midpoint"): The ODE solver.
        steps (int, default=1): The number of fixed steps between two observations for "cde" and "hybrid", and eight
            times as many in all for "c-node" and "node".
        learning_rate (float, default=3e-3): The learning rate of AdamW.
        weight_decay (float, default=1e-2): The decoupled weight decay of AdamW.
        max_iter (int, default=200): The maximum number of epochs.
        batch_size (int, default=32): The maximum number of series per mini-batch.
        early_stopping (bool, default=True): Whether to set series aside for validation, to select the weights by their
            loss, and to stop when it no longer improves. If False, training takes `max_iter` epochs, and the weights
            are selected by the loss of all series.
        validation_fraction (float, default=0.1): The proportion of the series to set aside for validation. Only used
            if `early_stopping` is True.
        n_iter_no_change (int, default=50): The number of epochs without improvement after which training stops. Only
            used if `early_stopping` is True.
        random_state (int, RandomState instance or None, default=None): The seed of the initial weights, the validation
            series, the mini-batches and the dropped observations. Pass an int for reproducible results.
        verbose (bool, default=False): Whether to print one line per epoch.

    Attributes:
        classes_ (ndarray of shape (n_classes,)): The class labels.
        n_features_in_ (int): The number of channels seen during `fit`.
        n_iter_ (int): The number of epochs that training took.
        loss_curve_ (list of float): The validation loss after each epoch, averaged over the members; the loss of all
            series if `early_stopping` is False.
        best_loss_ (float): The loss of the selected weights, averaged over the members.
        input_scale_ (Standardizer): The standardization of the channels.
        duration_ (float): The unit of time: the mean duration of a training series.
        ensemble_ (Ensemble): The selected weights; `ensemble_.model(i)` is member number i.

    ```python
    import numpy as np
    from charax.estimators import SeriesClassifier

    generator = np.random.default_rng(0)
    X = [generator.normal(size=(length, 2)).cumsum(axis=0) for length in (5, 8) * 10]
    y = [int(series[-1, 0] > series[0, 0]) for series in X]
    classifier = SeriesClassifier(width=4, state_dim=4, max_iter=3, random_state=0).fit(X, y)
    assert classifier.predict_proba(X[:3]).shape == (3, 2)
    ```
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: rule for name, rule in CONSTRAINTS.items() if name not in ("rtol", "adjoint", "warm_start")},
        "method": [StrOptions(set(get_args(SeriesMethod)))],
        "state_dim": [POSITIVE_INTEGER],
        "characteristic_dim": [POSITIVE_INTEGER],
        "interpolation": [StrOptions(set(get_args(Interpolation)))],
        "counts": ["boolean"],
        "drop_augmentation": [Interval(Real, 0, 1, closed="left")],
        "members": [POSITIVE_INTEGER],
        "solver": [StrOptions({"euler", "midpoint", "bosh3"})],
    }
    method: Any
    interpolation: Any
    # What other estimators have as parameters.
    rtol = None
    adjoint = "checkpoint"
    warm_start = False

    def __init__(
        self,
        method="cde",
        *,
        width=32,
        state_dim=16,
        characteristic_dim=4,
        interpolation="hermite",
        counts=True,
        drop_augmentation=0.7,
        members=1,
        solver="midpoint",
        steps=1,
        learning_rate=3e-3,
        weight_decay=1e-2,
        max_iter=200,
        batch_size=32,
        early_stopping=True,
        validation_fraction=0.1,
        n_iter_no_change=50,
        random_state=None,
        verbose=False,
    ):
        self.method = method
        self.width = width
        self.state_dim = state_dim
        self.characteristic_dim = characteristic_dim
        self.interpolation = interpolation
        self.counts = counts
        self.drop_augmentation = drop_augmentation
        self.members = members
        self.solver = solver
        self.steps = steps
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, X: ArrayLike, y: ArrayLike, times: ArrayLike = None
    ) -> "SeriesClassifier":
        """Fit the classifier.

        Args:
            X (array of shape (n_series, length, n_channels), or sequence of n_series arrays of shape
                (length, n_channels)): The training series; NaN where a value is missing.
            y (array-like of shape (n_series,)): The class labels.
            times (array of shape (n_series, length), or sequence of arrays of shape (length,), default=None): The times
                of the observations, which increase within each series; 0, 1, 2 … if None.

        Returns:
            The fitted estimator.

        Raises:
            ValueError: If the data or a parameter is invalid.
        """
        series, y = SeriesArrays.read(X, times), column_or_1d(y)
        check_consistent_length(series.lengths, y)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        self.n_features_in_ = series.values.shape[2]
        self.input_scale_ = _standardize(series)
        last = series.times[np.arange(len(y)), series.lengths - 1]
        self.duration_ = float(last.mean()) or 1.0
        design = SeriesDesign(
            self.method,
            width=self.width,
            state_dim=self.state_dim,
            characteristic_dim=self.characteristic_dim,
            interpolation=self.interpolation,
            count_scale=float(f"{1 / series.lengths.mean():.0e}") if self.counts else None,
            reads_path=True,
            readout="mean",
        )
        inputs = series.pack(self.input_scale_, self.duration_)
        solver = self._solver_config()
        if self.method in ("c-node", "node"):
            solver = replace(solver, steps=8 * self.steps)
        objective = SeriesObjective(
            solver, inputs.shape[1], len(self.classes_), design, self.n_features_in_, float(self.drop_augmentation)
        )
        rows = Rows(inputs.astype(np.float64), np.eye(len(self.classes_))[labels], np.ones(len(y)))
        self._fit_ensemble(objective, rows, members=self.members)
        return self

    def predict_proba(self, X: ArrayLike, times: ArrayLike = None) -> Float[np.ndarray, "series classes"]:
        """Predict class probabilities.

        Args:
            X (array of shape (n_series, length, n_channels), or sequence of arrays): Series, which may be longer than
                those of `fit`.
            times (array of shape (n_series, length), or sequence of arrays, default=None): Their times; 0, 1, 2 … if
                None.

        Returns:
            An array of shape (n_series, n_classes), with the classes in the order of `classes_`.

        Raises:
            ValueError: If the series have other channels.
            SolveError: If the solve fails for one of the series.
        """
        check_is_fitted(self)
        series = SeriesArrays.read(X, times)
        if series.values.shape[2] != self.n_features_in_:
            raise ValueError(
                f"X has {series.values.shape[2]} channels, but SeriesClassifier was fitted with {self.n_features_in_}."
            )
        inputs = series.pack(self.input_scale_, self.duration_)
        objective = replace(self.ensemble_.objective, features=inputs.shape[1])
        probabilities = replace(self.ensemble_, objective=objective).predict(inputs).mean(axis=0, dtype=np.float64)
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def predict(self, X: ArrayLike, times: ArrayLike = None) -> Shaped[np.ndarray, "series"]:
        """Predict class labels.

        Args:
            X (array of shape (n_series, length, n_channels), or sequence of arrays): Series, which may be longer than
                those of `fit`.
            times (array of shape (n_series, length), or sequence of arrays, default=None): Their times; 0, 1, 2 … if
                None.

        Returns:
            The most probable class of each series, an array of shape (n_series,).

        Raises:
            ValueError: If the series have other channels.
            SolveError: If the solve fails for one of the series.
        """
        probabilities = self.predict_proba(X, times)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags


def _standardize(series: SeriesArrays) -> Standardizer:
    """Over all observed values."""
    rows = series.values.reshape(-1, series.values.shape[2])
    empty = np.isnan(rows).all(axis=0)
    if empty.any():
        raise ValueError(f"Channel {int(np.argmax(empty))} of X has no value in any series: leave it out.")
    mean, std = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    std = np.where(std > 1e-12 * np.abs(mean), std, 1.0)
    return Standardizer(tuple(mean.tolist()), tuple(std.tolist()))
