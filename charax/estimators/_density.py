"""Density estimation."""

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Float
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from charax.data import Standardizer
from charax.estimators._base import (
    CONSTRAINTS,
    POSITIVE_INTEGER,
    AbstractEstimator,
    ArrayLike,
    check_sample_weight,
    epochs_per_evaluation_of_matching,
    patience_of_matching,
)
from charax.estimators._objectives import DensityObjective
from charax.estimators._rows import Rows
from charax.models.flows import ContinuousFlow, VectorFlowDesign

_SHARPNESSES = (1.0, 2.0, 4.0)
"""What is tried if the sharpness is chosen by validation."""
_LEAST_ROWS = 50
"""Validation rows that can tell which sharpness is better: of fewer, the least loss is a matter of luck."""


class FlowDensity(ClassNamePrefixFeaturesOutMixin, TransformerMixin, AbstractEstimator):
    """A density estimator: a continuous normalizing flow, which maps the data to a normal distribution and back.

    Features are standardized. Equal rows are merged into one with the sum of their weights.

    Args:
        method ({"node", "c-node"}, default="c-node"): The field of the flow: a plain neural ODE, or a characteristic
            one.
        objective ({"likelihood", "matching"}, default="likelihood"): What is minimized: the negative log-likelihood, or
            the flow matching loss, without solving. The weights are selected by the log-likelihood of the validation
            rows in either case.
        characteristic_dim (int, default=8): The number k of characteristic dimensions. Only used by "c-node".
        width (int, default=32): The width of the hidden layers.
        sharpness (float or "auto", default="auto"): How fast the density may change: the factor inside the activations,
            and with flow matching half of the standard deviation of the frequencies of the features. Larger for thin
            parts and sharp edges. "auto": trains with 1, 2 and 4, which takes three times as long, and keeps the one
            with the lowest loss of the validation rows; 1 if there are fewer than 50 of them, or no `early_stopping`.
        solver ({"euler", "midpoint", "heun", "bosh3", "tsit5", "dopri5", "dopri8"}, default="midpoint"): The ODE
            solver.
        steps (int, default=8): The number of fixed steps of the solver. Ignored if `rtol` is given.
        rtol (float or None, default=None): The relative and absolute tolerance of adaptive steps, which all solvers but
            "euler" can take; None for fixed steps.
        adjoint ({"checkpoint", "backsolve", "direct"}, default="checkpoint"): How gradients are computed. "checkpoint":
            exact gradients of the steps, in bounded memory. "backsolve": the continuous adjoint integrated backwards,
            approximate, in constant memory. "direct": differentiation through the solver's loop.
        learning_rate (float, default=5e-3): The learning rate of AdamW.
        weight_decay (float, default=0.05): The decoupled weight decay of AdamW.
        max_iter (int, default=200): The maximum number of epochs.
        batch_size (int, default=256): The maximum number of rows per mini-batch.
        early_stopping (bool, default=True): Whether to set rows aside for validation, to select the weights by their
            loss, and to stop when it no longer improves. If False, training takes `max_iter` epochs, and the weights
            are selected by the loss of all rows.
        validation_fraction (float, default=0.1): The proportion of the rows to set aside for validation. Only used if
            `early_stopping` is True.
        n_iter_no_change (int or "auto", default="auto"): The number of epochs without improvement after which training
            stops. "auto": 30, and with flow matching at least as many as have 500 steps, because its log-likelihood
            may fall before it rises. Only used if `early_stopping` is True.
        warm_start (bool, default=False): Whether `fit` starts from the weights of the previous call, with the same
            standardization, instead of from new weights.
        random_state (int, RandomState instance or None, default=None): The seed of the initial weights, the validation
            rows and the mini-batches. Pass an int for reproducible results.
        verbose (bool, default=False): Whether to print one line per epoch.

    Attributes:
        n_features_in_ (int): The number of features seen during `fit`.
        feature_names_in_ (ndarray of shape (n_features_in_,)): The names of the features seen during `fit`. Defined
            only if all of them are strings.
        n_iter_ (int): The number of epochs that training took.
        loss_curve_ (list of float): The validation loss after each epoch; the loss of all rows if `early_stopping` is
            False. With flow matching, epochs of fewer than 60 steps are evaluated several at a time.
        best_loss_ (float): The loss of the selected weights.
        sharpness_ (float): The sharpness of the selected weights.
        input_scale_ (Standardizer): The standardization of the features.
        ensemble_ (Ensemble): The selected weights; `ensemble_.model(0)` is the trained model.

    ```python
    from sklearn.datasets import make_moons
    from charax.estimators import FlowDensity

    X, _ = make_moons(200, noise=0.05, random_state=0)
    density = FlowDensity(max_iter=20, random_state=0).fit(X)
    assert density.score_samples(X[:3]).shape == (3,)
    assert density.sample(5, random_state=0).shape == (5, 2)
    ```
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "method": [StrOptions({"node", "c-node"})],
        "objective": [StrOptions({"likelihood", "matching"})],
        "characteristic_dim": [POSITIVE_INTEGER],
        "sharpness": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_iter_no_change": [POSITIVE_INTEGER, StrOptions({"auto"})],
    }

    def __init__(
        self,
        method="c-node",
        *,
        objective="likelihood",
        characteristic_dim=8,
        width=32,
        sharpness: Any = "auto",
        solver="midpoint",
        steps=8,
        rtol=None,
        adjoint="checkpoint",
        learning_rate=5e-3,
        weight_decay=0.05,
        max_iter=200,
        batch_size=256,
        early_stopping=True,
        validation_fraction=0.1,
        n_iter_no_change: Any = "auto",
        warm_start=False,
        random_state=None,
        verbose=False,
    ):
        self.method = method
        self.objective = objective
        self.characteristic_dim = characteristic_dim
        self.width = width
        self.sharpness = sharpness
        self.solver = solver
        self.steps = steps
        self.rtol = rtol
        self.adjoint = adjoint
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike = None, sample_weight: ArrayLike = None) -> "FlowDensity":
        """Fit the density.

        Args:
            X (array-like of shape (n_samples, n_features)): The training data.
            y (None): Ignored; present for API consistency.
            sample_weight (array-like of shape (n_samples,), default=None): The sample weights; all 1 if None.

        Returns:
            The fitted estimator.

        Raises:
            ValueError: If the data or a parameter is invalid.
        """
        X = validate_data(self, X, dtype=np.float64)
        rows = Rows(X, np.zeros((len(X), 0)), check_sample_weight(sample_weight, X)).merge_duplicates()
        if not self._is_warm_start():
            self.input_scale_ = Standardizer.fit(rows.inputs, weights=rows.weights)
        candidates = self._candidates(len(rows.inputs))
        objectives = [self._objective(X.shape[1], sharpness) for sharpness in candidates]
        scaled = rows._replace(inputs=self.input_scale_.apply(rows.inputs))
        self._fit_ensemble(objectives[0], scaled, members=1, others=objectives[1:])
        self.sharpness_ = candidates[objectives.index(self.ensemble_.objective)]  # pyright: ignore[reportArgumentType]
        return self

    def _candidates(self, rows: int) -> tuple[float, ...]:
        if self.sharpness != "auto":
            return (float(self.sharpness),)
        if self._is_warm_start():
            return (self.sharpness_,)
        can_tell = self.early_stopping and self.validation_fraction * rows >= _LEAST_ROWS
        return _SHARPNESSES if can_tell else _SHARPNESSES[:1]

    def _objective(self, features: int, sharpness: float) -> DensityObjective:
        by_likelihood = self.objective == "likelihood"
        design = VectorFlowDesign(self.method, self.width, characteristic_dim=self.characteristic_dim)
        if by_likelihood:
            design = replace(design, sharpness=sharpness)
        else:
            frequencies = {"frequencies": 8, "frequency_scale": 2 * sharpness}
            design = replace(design, velocity_width=self.width, activation="silu", **frequencies)
        return DensityObjective(self._solver_config(), features, 0, design, by_likelihood)

    def score_samples(self, X: ArrayLike) -> Float[np.ndarray, "rows"]:
        """Compute the log-density of each sample.

        Args:
            X (array-like of shape (n_samples, n_features)): The samples.

        Returns:
            The log-densities, an array of shape (n_samples,). They are normalized in the units of the data.

        Raises:
            SolveError: If the solve fails for one of the samples.
        """
        return self._forward(X)[1] - np.log(self.input_scale_.std).sum()

    def score(self, X: ArrayLike, y: ArrayLike = None) -> float:
        """Compute the mean log-density of the samples.

        Args:
            X (array-like of shape (n_samples, n_features)): The samples.
            y (None): Ignored; present for API consistency.

        Returns:
            The mean log-density; higher is better.

        Raises:
            SolveError: If the solve fails for one of the samples.
        """
        return float(np.mean(self.score_samples(X)))

    def transform(self, X: ArrayLike) -> Float[np.ndarray, "rows features"]:
        """Map samples to the base distribution, in which they follow a standard normal if the density is right.

        Args:
            X (array-like of shape (n_samples, n_features)): The samples.

        Returns:
            The mapped samples, an array of shape (n_samples, n_features).

        Raises:
            SolveError: If the solve fails for one of the samples.
        """
        return self._forward(X)[0]

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Float[np.ndarray, "samples features"]:
        """Draw samples from the density.

        Args:
            n_samples (int, default=1): The number of samples.
            random_state (int, RandomState instance or None, default=None): The seed of the samples.

        Returns:
            The samples, an array of shape (n_samples, n_features), in the units of the data.
        """
        check_is_fitted(self)
        flow = self.ensemble_.model(0)
        assert isinstance(flow, ContinuousFlow)
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        samples = flow.sample(n_samples, key=jax.random.key(seed), solver=self.ensemble_.objective.training_solver)
        return self.input_scale_.inverse(np.asarray(samples))

    def _forward(self, X: ArrayLike) -> tuple[Float[np.ndarray, "rows features"], Float[np.ndarray, "rows"]]:
        X = self._check_X(X)
        mapped, log_density = self.ensemble_.predict(self.input_scale_.apply(X))
        return mapped[0].astype(np.float64), log_density[0].astype(np.float64)

    def _patience(self, steps: int) -> int:
        if self.n_iter_no_change != "auto":
            return self.n_iter_no_change
        return patience_of_matching(30, steps) if self.objective == "matching" else 30

    def _epochs_per_evaluation(self, steps: int) -> int:
        return epochs_per_evaluation_of_matching(steps) if self.objective == "matching" else 1

    def _ema(self, rows: int) -> float | None:
        return None if self.objective == "likelihood" else 0.99

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_
