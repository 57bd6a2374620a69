"""Regression of functions of position and time along learned characteristics."""

import dataclasses
import warnings
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from sklearn.base import RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from charax.data import Standardizer
from charax.estimators._base import CONSTRAINTS, AbstractEstimator, ArrayLike, check_sample_weight
from charax.estimators._objectives import PDEObjective
from charax.estimators._rows import Rows
from charax.models import EquationRegressor, LearnedProblem, Scaling


class CharacteristicRegressor(RegressorMixin, AbstractEstimator):
    """A regressor of functions u(x, t) along learned characteristics.

    The last column of `X` is the time t, the others are the position x. The characteristics start at the earliest time
    of the training data. Positions and values are standardized. Equal rows are merged into one with the sum of their
    weights.

    Args:
        method ({"c-node", "equation", "node", "node-fair"}, default="c-node"): What is learned. "c-node": the
            derivatives along a characteristic, as in the paper. "equation": a and c of uₜ + a·∇u = c. "node": the
            baseline of the paper. "node-fair": a baseline that also learns the initial value.
        width (int, default=15): The width of the hidden layers.
        solver ({"euler", "midpoint", "heun", "bosh3", "tsit5", "dopri5", "dopri8"}, default="midpoint"): The ODE
            solver.
        steps (int, default=6): The number of fixed steps of the solver. Ignored if `rtol` is given.
        rtol (float or None, default=None): The relative and absolute tolerance of adaptive steps, which all solvers but
            "euler" can take; None for fixed steps.
        adjoint ({"checkpoint", "backsolve", "direct"}, default="checkpoint"): How gradients are computed. "checkpoint":
            exact gradients of the steps, in bounded memory. "backsolve": the continuous adjoint integrated backwards,
            approximate, in constant memory. "direct": differentiation through the solver's loop.
        learning_rate (float, default=5e-3): The learning rate of AdamW.
        weight_decay (float, default=0.0): The decoupled weight decay of AdamW.
        max_iter (int, default=500): The maximum number of epochs.
        batch_size (int, default=64): The maximum number of rows per mini-batch.
        early_stopping (bool, default=True): Whether to set rows aside for validation, to select the weights by their
            loss, and to stop when it no longer improves. If False, training takes `max_iter` epochs, and the weights
            are selected by the loss of all rows.
        validation_fraction (float, default=0.1): The proportion of the rows to set aside for validation. Only used if
            `early_stopping` is True.
        n_iter_no_change (int, default=100): The number of epochs without improvement after which training stops. Only
            used if `early_stopping` is True.
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
            False.
        best_loss_ (float): The loss of the selected weights.
        input_scale_ (Standardizer): The standardization of the features.
        output_scale_ (Standardizer): The standardization of the targets.
        outputs_2d_ (bool): Whether the targets of `fit` had two dimensions.
        ensemble_ (Ensemble): The selected weights; `ensemble_.model(0)` is the trained model.
        domain_ (tuple of (float, float)): The range of each position, widened by its width on both sides: where
            characteristics through the training data may start.

    ```python
    import numpy as np
    from charax.estimators import CharacteristicRegressor

    X = np.random.default_rng(0).uniform(0, 1, (100, 2))  # x, t
    u = np.sin(3 * (X[:, 0] - X[:, 1]))  # a wave that moves to the right
    regressor = CharacteristicRegressor(max_iter=20, random_state=0).fit(X, u)
    assert regressor.predict([[0.5, 0.5]]).shape == (1,)
    ```
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "method": [StrOptions({"c-node", "equation", "node", "node-fair"})],
    }

    def __init__(
        self,
        method="c-node",
        *,
        width=15,
        solver="midpoint",
        steps=6,
        rtol=None,
        adjoint="checkpoint",
        learning_rate=5e-3,
        weight_decay=0.0,
        max_iter=500,
        batch_size=64,
        early_stopping=True,
        validation_fraction=0.1,
        n_iter_no_change=100,
        warm_start=False,
        random_state=None,
        verbose=False,
    ):
        self.method = method
        self.width = width
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
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> "CharacteristicRegressor":
        """Fit the regressor.

        Args:
            X (array-like of shape (n_samples, n_features)): Positions, and times in the last column.
            y (array-like of shape (n_samples,) or (n_samples, n_outputs)): The values of u.
            sample_weight (array-like of shape (n_samples,), default=None): The sample weights; all 1 if None.

        Returns:
            The fitted estimator.

        Raises:
            ValueError: If the data or a parameter is invalid.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_features=2)
        weights = check_sample_weight(sample_weight, X)
        rows = Rows(X, y.reshape(len(y), -1).astype(np.float64), weights).merge_duplicates()
        if not self._is_warm_start():
            self.input_scale_ = _standardize_positions_and_times(rows)
            self.output_scale_ = Standardizer.fit(rows.targets, weights=rows.weights)
        self.outputs_2d_ = y.ndim == 2
        ends = X[:, :-1].min(axis=0), X[:, :-1].max(axis=0)
        width = ends[1] - ends[0] + (ends[0] == ends[1])
        self.domain_ = tuple(zip((ends[0] - width).tolist(), (ends[1] + width).tolist(), strict=True))
        objective = PDEObjective(self._solver_config(), X.shape[1], rows.targets.shape[1], self.method, self.width)
        scaled = rows._replace(
            inputs=self.input_scale_.apply(rows.inputs), targets=self.output_scale_.apply(rows.targets)
        )
        self._fit_ensemble(objective, scaled, members=1)
        return self

    def predict(self, X: ArrayLike) -> Float[np.ndarray, "rows *values"]:
        """Predict the values of u. Warns if no characteristic through some of the points was found.

        Args:
            X (array-like of shape (n_samples, n_features)): Positions, and times in the last column.

        Returns:
            An array of shape (n_samples,), or (n_samples, n_outputs) if the targets of `fit` had two dimensions.

        Raises:
            SolveError: If the solve fails for one of the points.
        """
        X = self._check_X(X)
        (u,), (found,) = self.ensemble_.predict(self.input_scale_.apply(X))
        if not found.all():
            warnings.warn(
                f"No characteristic was found through {(~found).sum()} of {len(found)} points, the first is row "
                f"{np.argmin(found)}; their values are those of characteristics that end nearby.",
                ConvergenceWarning,
                stacklevel=2,
            )
        values = self.output_scale_.inverse(u)
        return values if self.outputs_2d_ else values[:, 0]

    @property
    def problem_(self) -> LearnedProblem:
        """The learned equation as a problem of `charax.pde`, in the units of the data.

        Only `method="equation"` learns one. Its time is counted from the earliest time of the training data.

        Raises:
            AttributeError: If the method learns no equation.
        """
        check_is_fitted(self)
        model = self.ensemble_.model(0)
        if not isinstance(model, EquationRegressor):
            raise AttributeError(f"method={self.method!r} learns no equation: fit with method='equation'")
        inputs, outputs = self.input_scale_, self.output_scale_
        scaling = Scaling(
            tuple(inputs.mean[:-1]), tuple(inputs.std[:-1]), inputs.std[-1], tuple(outputs.mean), tuple(outputs.std)
        )
        return dataclasses.replace(model, scaling=scaling).problem(*self.domain_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _standardize_positions_and_times(rows: Rows) -> Standardizer:
    """Standardize positions, and map times to [0, 1]: the characteristics start at the earliest time."""
    scale, times = Standardizer.fit(rows.inputs, weights=rows.weights), rows.inputs[:, -1]
    span = np.ptp(times) or 1.0
    return Standardizer((*scale.mean[:-1], float(times.min())), (*scale.std[:-1], float(span)))
