"""Conditional density estimation."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import validate_data

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
from charax.estimators._objectives import ConditionalDensityObjective
from charax.estimators._quantiles import base_points, base_points_with_tails, mixture_quantiles
from charax.estimators._rows import Rows
from charax.models.flows import VectorFlowDesign

_POINTS = 64
"""Points of the base distribution that represent a member's density in means and quantiles."""
_FAR = 20.0
"""The standard deviations from the mean beyond which all values of a feature are the same to the field: its solution
would take thousands of steps."""


class FlowRegressor(RegressorMixin, AbstractEstimator):
    """A regressor that predicts whole distributions: a flow of the targets whose field reads the features.

    The conditional density p(y | X) may have any shape. It is the mean of the densities of an ensemble. Features and
    targets are standardized, and a feature that is more than 20 standard deviations from its mean counts as that far.
    Equal rows are merged into one with the sum of their weights.

    Args:
        method ({"node", "c-node"}, default="c-node"): The field of the flow: a plain neural ODE, or a characteristic
            one.
        objective ({"matching", "likelihood"}, default="matching"): What is minimized: the flow matching loss, without
            solving, or the negative log-likelihood. The weights are selected by the log-likelihood of the validation
            rows in either case.
        characteristic_dim (int, default=8): The number k of characteristic dimensions. Only used by "c-node".
        width (int, default=64): The width of the hidden layers.
        frequencies (int, default=8): The number of sines and cosines of the target in front of the networks.
        members (int, default=5): The number of flows in the ensemble.
        solver ({"euler", "midpoint", "heun", "bosh3", "tsit5", "dopri5", "dopri8"}, default="dopri5"): The ODE solver.
        steps (int, default=16): The number of fixed steps of the solver. Ignored if `rtol` is given.
        rtol (float or None, default=1e-3): The relative and absolute tolerance of adaptive steps, which all solvers but
            "euler" can take; None for fixed steps.
        adjoint ({"checkpoint", "backsolve", "direct"}, default="checkpoint"): How gradients are computed if the
            objective is the likelihood. "checkpoint": exact gradients of the steps, in bounded memory. "backsolve": the
            continuous adjoint integrated backwards, approximate, in constant memory. "direct": differentiation through
            the solver's loop.
        learning_rate (float, default=3e-3): The learning rate of AdamW.
        weight_decay (float, default=0.01): The decoupled weight decay of AdamW.
        max_iter (int, default=400): The maximum number of epochs.
        batch_size (int, default=64): The maximum number of rows per mini-batch.
        early_stopping (bool, default=True): Whether to set rows aside for validation, to select the weights by their
            log-likelihood, and to stop when it no longer improves. If False, training takes `max_iter` epochs, and the
            weights are selected by the log-likelihood of all rows.
        validation_fraction (float, default=0.1): The proportion of the rows to set aside for validation, different rows
            for each member. Only used if `early_stopping` is True.
        n_iter_no_change (int or "auto", default="auto"): The number of epochs without improvement after which training
            stops. "auto": 25, and with flow matching at least as many as have 500 steps, because its log-likelihood
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
        loss_curve_ (list of float): The negative log-likelihood of the validation rows after each epoch, in
            standardized units, averaged over the members; that of all rows if `early_stopping` is False. With flow
            matching, epochs of fewer than 60 steps are evaluated several at a time.
        best_loss_ (float): The loss of the selected weights, averaged over the members.
        input_scale_ (Standardizer): The standardization of the features.
        output_scale_ (Standardizer): The standardization of the targets.
        outputs_2d_ (bool): Whether the targets of `fit` had two dimensions.
        ensemble_ (Ensemble): The selected weights; `ensemble_.model(i)` is member number i.

    ```python
    import numpy as np
    from charax.estimators import FlowRegressor

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 1))
    y = rng.choice([-1, 1], 100) * X[:, 0] + 0.1 * rng.normal(size=100)  # two branches, which no mean describes
    regressor = FlowRegressor(max_iter=5, members=1, random_state=0).fit(X, y)
    assert regressor.log_prob(X[:3], y[:3]).shape == (3,)
    assert regressor.predict_quantiles(X[:3], [0.1, 0.5, 0.9]).shape == (3, 3)
    assert regressor.sample(X[:3], 10, random_state=0).shape == (3, 10)
    ```
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "method": [StrOptions({"node", "c-node"})],
        "objective": [StrOptions({"matching", "likelihood"})],
        "characteristic_dim": [POSITIVE_INTEGER],
        "n_iter_no_change": [POSITIVE_INTEGER, StrOptions({"auto"})],
        "frequencies": [POSITIVE_INTEGER],
        "members": [POSITIVE_INTEGER],
    }

    def __init__(
        self,
        method="c-node",
        *,
        objective="matching",
        characteristic_dim=8,
        width=64,
        frequencies=8,
        members=5,
        solver="dopri5",
        steps=16,
        rtol=1e-3,
        adjoint="checkpoint",
        learning_rate=3e-3,
        weight_decay=0.01,
        max_iter=400,
        batch_size=64,
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
        self.frequencies = frequencies
        self.members = members
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
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> "FlowRegressor":
        """Fit the conditional density.

        Args:
            X (array-like of shape (n_samples, n_features)): The training data.
            y (array-like of shape (n_samples,) or (n_samples, n_outputs)): The target values.
            sample_weight (array-like of shape (n_samples,), default=None): The sample weights; all 1 if None.

        Returns:
            The fitted estimator.

        Raises:
            ValueError: If the data or a parameter is invalid.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        weights = check_sample_weight(sample_weight, X)
        rows = Rows(X, y.reshape(len(y), -1).astype(np.float64), weights).merge_duplicates()
        if not self._is_warm_start():
            self.input_scale_ = Standardizer.fit(rows.inputs, weights=rows.weights)
            self.output_scale_ = Standardizer.fit(rows.targets, weights=rows.weights)
        self.outputs_2d_ = y.ndim == 2
        design = VectorFlowDesign(
            self.method,
            width=self.width,
            velocity_width=self.width,
            characteristic_dim=self.characteristic_dim,
            classes=X.shape[1],
            activation="silu",
            frequencies=self.frequencies,
            frequency_scale=2.0,
        )
        objective = ConditionalDensityObjective(
            self._solver_config(), X.shape[1], rows.targets.shape[1], design, self.objective == "likelihood"
        )
        scaled = rows._replace(inputs=self._standardize(rows.inputs), targets=self.output_scale_.apply(rows.targets))
        self._fit_ensemble(objective, scaled, members=self.members)
        return self

    def predict(self, X: ArrayLike) -> Float[np.ndarray, "rows *outputs"]:
        """Predict the means of the distributions.

        Args:
            X (array-like of shape (n_samples, n_features)): The samples.

        Returns:
            An array of shape (n_samples,), or (n_samples, n_outputs) if the targets of `fit` had two dimensions.

        Raises:
            SolveError: If the solve fails for one of the samples.
        """
        X = self._check_X(X)
        return self._shape(self._map(X, base_points(_POINTS, self._outputs)).mean(axis=(0, 2)))

    def predict_quantiles(
        self, X: ArrayLike, quantiles: ArrayLike = (0.025, 0.5, 0.975)
    ) -> Float[np.ndarray, "rows quantiles *outputs"]:
        """Predict quantiles of the distributions, of each target on its own.

        Of a single target, any quantile can be asked for. Those in tails that no training row has reached are what the
        flows have extrapolated. Of several targets, quantiles are estimated from 64 points of each member, so that
        only probabilities from 1 / (128 members) on have an answer: those of many samples reach further.

        Args:
            X (array-like of shape (n_samples, n_features)): The samples.
            quantiles (array-like of shape (n_quantiles,), default=(0.025, 0.5, 0.975)): Probabilities between 0 and 1.

        Returns:
            An array of shape (n_samples, n_quantiles), or (n_samples, n_quantiles, n_outputs) if the targets of `fit`
            had two dimensions.

        Raises:
            ValueError: If a probability is not between 0 and 1, or too near to one of them for several targets.
            SolveError: If the solve fails for one of the samples.
        """
        X, probabilities = self._check_X(X), np.atleast_1d(np.asarray(quantiles, float))
        if probabilities.ndim != 1 or not ((probabilities > 0) & (probabilities < 1)).all():
            raise ValueError(f"quantiles must be numbers between 0 and 1, such as [0.1, 0.5, 0.9]; got {quantiles}")
        nearest = np.minimum(probabilities, 1 - probabilities).min(initial=0.5)
        if self._outputs == 1:
            z = base_points_with_tails(_POINTS, nearest)
            return self._shape(mixture_quantiles(self._map(X, z)[..., 0], z[:, 0], probabilities)[..., None])
        # Each of n points stands for the middle of 1/n of the probability.
        least = 0.5 / (_POINTS * len(self.ensemble_.params))
        if nearest < least:
            raise ValueError(
                f"quantiles of {self._outputs} targets must be at least {least:g} and at most {1 - least:g}, got "
                f"{quantiles}: for others, take np.quantile of sample(X, n_samples=100_000) along axis 1"
            )
        pooled = np.concatenate(self._map(X, base_points(_POINTS, self._outputs)), axis=1)
        return self._shape(np.moveaxis(np.quantile(pooled, probabilities, axis=1, method="hazen"), 0, 1))

    def sample(
        self, X: ArrayLike, n_samples: int = 1, random_state: Any = None
    ) -> Float[np.ndarray, "rows samples *outputs"]:
        """Draw samples from the distributions.

        Args:
            X (array-like of shape (n_samples, n_features)): The rows whose distributions are sampled from.
            n_samples (int, default=1): The number of samples for each row.
            random_state (int, RandomState instance or None, default=None): The seed of the samples.

        Returns:
            An array of shape (n_rows, n_samples), or (n_rows, n_samples, n_outputs) if the targets of `fit` had two
            dimensions.

        Raises:
            ValueError: If `n_samples` is below 1.
            SolveError: If a solve fails.
        """
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}")
        rows, random = np.repeat(self._check_X(X), n_samples, axis=0), check_random_state(random_state)
        z = random.normal(size=(len(rows), self._outputs))
        # Every member answers for all rows, and each sample takes the answer of a random one.
        answers = self._ask(np.column_stack([self._standardize(rows), z]), points=1)
        values = answers[random.randint(len(answers), size=len(rows)), np.arange(len(rows)), 0]
        return self._shape(self.output_scale_.inverse(values).reshape(-1, n_samples, self._outputs))

    def log_prob(self, X: ArrayLike, y: ArrayLike) -> Float[np.ndarray, "rows"]:
        """Compute the log-density of targets given features.

        Args:
            X (array-like of shape (n_samples, n_features)): The samples.
            y (array-like of shape (n_samples,) or (n_samples, n_outputs)): Their targets.

        Returns:
            The log-densities, an array of shape (n_samples,). They are normalized in the units of the targets.

        Raises:
            ValueError: If the targets do not belong to the samples, or are not finite.
            SolveError: If the solve fails for one of the samples.
        """
        X, y = self._check_X(X), np.asarray(y, np.float64)
        targets = y.reshape(len(X), -1) if y.ndim > 0 and len(y) == len(X) else y
        if targets.shape != (len(X), self._outputs):
            raise ValueError(f"y must have {len(X)} rows of {self._outputs} targets, like X; got the shape {y.shape}")
        is_finite = np.isfinite(targets).all(axis=1)
        if not is_finite.all():
            raise ValueError(f"y must be finite numbers; row {np.argmin(is_finite)} has {y[np.argmin(is_finite)]}")
        scaled = np.column_stack([self._standardize(X), self.output_scale_.apply(targets)])
        members = self._ask(scaled)
        mixture = np.logaddexp.reduce(members, axis=0) - np.log(len(members))
        return mixture - np.log(self.output_scale_.std).sum()

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> float:
        """Compute the mean log-density of targets given features.

        Args:
            X (array-like of shape (n_samples, n_features)): The samples.
            y (array-like of shape (n_samples,) or (n_samples, n_outputs)): Their targets.
            sample_weight (array-like of shape (n_samples,), default=None): The sample weights; all 1 if None.

        Returns:
            The mean log-density; higher is better.

        Raises:
            ValueError: If the targets or the weights do not belong to the samples, or are not valid numbers.
            SolveError: If the solve fails for one of the samples.
        """
        log_prob = self.log_prob(X, y)
        return float(np.average(log_prob, weights=check_sample_weight(sample_weight, log_prob[:, None])))

    @property
    def _outputs(self) -> int:
        return len(self.output_scale_.mean)

    def _standardize(self, X: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows features"]:
        """What the field reads of the features."""
        return np.clip(self.input_scale_.apply(X), -_FAR, _FAR)

    def _map(
        self, X: Float[np.ndarray, "rows features"], z: Float[np.ndarray, "points outputs"]
    ) -> Float[np.ndarray, "members rows points outputs"]:
        """Where each member maps points of the base distribution, for each row, in the units of the targets."""
        columns = np.column_stack([self._standardize(X), np.tile(z.ravel(), (len(X), 1))])
        return self.output_scale_.inverse(self._ask(columns, points=len(z)))

    def _ask(self, inputs: Float[np.ndarray, "rows columns"], **what: Any) -> Float[np.ndarray, "members rows *values"]:
        """The answers of the members to another question than that of the training."""
        objective = replace(self.ensemble_.objective, **what)
        answers = replace(self.ensemble_, objective=objective).predict(inputs.astype(np.float32))
        return answers.astype(np.float64)

    def _shape(self, values: Float[np.ndarray, "rows *more outputs"]) -> Float[np.ndarray, "rows *values"]:
        return values if self.outputs_2d_ else values[..., 0]

    def _patience(self, steps: int) -> int:
        if self.n_iter_no_change != "auto":
            return self.n_iter_no_change
        return patience_of_matching(25, steps) if self.objective == "matching" else 25

    def _epochs_per_evaluation(self, steps: int) -> int:
        return epochs_per_evaluation_of_matching(steps) if self.objective == "matching" else 1

    def _ema(self, rows: int) -> float | None:
        return 0.99 if self.objective == "matching" else None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # the score is a log-likelihood, and not R²
        return tags
