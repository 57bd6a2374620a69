"""Regression by matching straight paths between pairs."""

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import validate_data

from charax.data import Standardizer
from charax.estimators._base import CONSTRAINTS, POSITIVE_INTEGER, AbstractEstimator, ArrayLike, check_sample_weight
from charax.estimators._objectives import PairObjective
from charax.estimators._rows import Rows


class MatchingRegressor(RegressorMixin, AbstractEstimator):
    """A regressor that is trained without solving: the field of an ODE from x to y, matched on straight paths.

    A plain neural ODE ("node") cannot learn pairs whose paths cross, such as y = −x; a C-NODE, whose velocity reads the
    initial state, can. With straight paths its velocity hardly changes along a path, so that it comes close to one
    residual step x + f(x). Features and targets are standardized, and the shorter of the two is padded with zeros.
    Equal rows are merged into one with the sum of their weights.

    Args:
        method ({"node", "c-node"}, default="c-node"): The field: that of a plain neural ODE, or a characteristic one.
        characteristic_dim (int, default=8): The number k of characteristic dimensions. Only used by "c-node".
        width (int, default=32): The width of the hidden layers.
        solver ({"euler", "midpoint", "heun", "bosh3", "tsit5", "dopri5", "dopri8"}, default="midpoint"): The ODE solver
            of predictions.
        steps (int, default=4): The number of fixed steps of the solver. Ignored if `rtol` is given.
        rtol (float or None, default=None): The relative and absolute tolerance of adaptive steps, which all solvers but
            "euler" can take; None for fixed steps.
        learning_rate (float, default=5e-3): The learning rate of AdamW.
        weight_decay (float, default=0.01): The decoupled weight decay of AdamW.
        max_iter (int, default=300): The maximum number of epochs.
        batch_size (int, default=64): The maximum number of rows per mini-batch.
        early_stopping (bool, default=True): Whether to set rows aside for validation, to select the weights by the
            squared error of their predictions, and to stop when it no longer improves. If False, training takes
            `max_iter` epochs, and the weights are selected by the error of all rows.
        validation_fraction (float, default=0.1): The proportion of the rows to set aside for validation. Only used if
            `early_stopping` is True.
        n_iter_no_change (int, default=50): The number of epochs without improvement after which training stops. Only
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
        loss_curve_ (list of float): The mean squared error of the validation rows after each epoch, in standardized
            units; that of all rows if `early_stopping` is False.
        best_loss_ (float): The loss of the selected weights.
        input_scale_ (Standardizer): The standardization of the features.
        output_scale_ (Standardizer): The standardization of the targets.
        outputs_2d_ (bool): Whether the targets of `fit` had two dimensions.
        ensemble_ (Ensemble): The selected weights; `ensemble_.model(0)` is the trained map.

    ```python
    import numpy as np
    from charax.estimators import MatchingRegressor

    x = np.linspace(-1, 1, 100)[:, None]
    regressor = MatchingRegressor(max_iter=20, random_state=0).fit(x, -x[:, 0])  # all paths cross at 0
    assert regressor.predict(x).shape == (100,)
    ```
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: rule for name, rule in CONSTRAINTS.items() if name != "adjoint"},
        "method": [StrOptions({"node", "c-node"})],
        "characteristic_dim": [POSITIVE_INTEGER],
    }
    adjoint = "checkpoint"  # no gradient of a solve is ever taken

    def __init__(
        self,
        method="c-node",
        *,
        characteristic_dim=8,
        width=32,
        solver="midpoint",
        steps=4,
        rtol=None,
        learning_rate=5e-3,
        weight_decay=0.01,
        max_iter=300,
        batch_size=64,
        early_stopping=True,
        validation_fraction=0.1,
        n_iter_no_change=50,
        warm_start=False,
        random_state=None,
        verbose=False,
    ):
        self.method = method
        self.characteristic_dim = characteristic_dim
        self.width = width
        self.solver = solver
        self.steps = steps
        self.rtol = rtol
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
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> "MatchingRegressor":
        """Fit the map.

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
        objective = PairObjective(
            self._solver_config(),
            X.shape[1],
            rows.targets.shape[1],
            self.method,
            self.width,
            self.characteristic_dim,
        )
        scaled = rows._replace(
            inputs=self.input_scale_.apply(rows.inputs), targets=self.output_scale_.apply(rows.targets)
        )
        self._fit_ensemble(objective, scaled, members=1)
        return self

    def predict(self, X: ArrayLike) -> Float[np.ndarray, "rows *outputs"]:
        """Predict target values.

        Args:
            X (array-like of shape (n_samples, n_features)): The samples.

        Returns:
            An array of shape (n_samples,), or (n_samples, n_outputs) if the targets of `fit` had two dimensions.

        Raises:
            SolveError: If the solve fails for one of the samples.
        """
        X = self._check_X(X)
        values = self.output_scale_.inverse(self.ensemble_.predict(self.input_scale_.apply(X))[0].astype(np.float64))
        return values if self.outputs_2d_ else values[:, 0]

    def _ema(self, rows: int) -> float | None:
        return 0.99

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def match_pairs(x: ArrayLike, y: ArrayLike, **parameters: Any) -> MatchingRegressor:
    """Learn a map from pairs by matching straight paths between them; nothing is solved in training.

    Args:
        x (array-like of shape (n_samples, n_features)): Where the paths begin.
        y (array-like of shape (n_samples,) or (n_samples, n_outputs)): Where they end.
        **parameters: Those of `MatchingRegressor`, such as `method`, `width` or `random_state`.

    Returns:
        The fitted regressor: `predict` maps new rows.

    Raises:
        ValueError: If the data or a parameter is invalid.

    ```python
    import numpy as np
    from charax import match_pairs

    x = np.linspace(-1, 1, 100)[:, None]
    assert match_pairs(x, -x, max_iter=20, random_state=0).predict(x).shape == (100, 1)
    ```
    """
    return MatchingRegressor(**parameters).fit(x, y)
