"""Functions of place and time, learned as solutions of a PDE."""

import warnings
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from sklearn.base import RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import validate_data

from charax.data import Standardizer
from charax.estimators._base import CONSTRAINTS, AbstractTrainedEstimator, Table, check_weights
from charax.estimators._objectives import Pde
from charax.estimators._rows import Rows


class CharacteristicRegressor(RegressorMixin, AbstractTrainedEstimator):
    """u(x, t) along learned characteristics: a regressor whose last column is a time, and the others a place.

    The paths start at the earliest time that was seen. Places and values are standardised. Equal rows count as one
    with the sum of their weights.

    Parameters
    ----------
    method : {"c-node", "equation", "node", "node-fair"}, default="c-node"
        The paper's networks for the derivatives along a path; one that learns a and c of uₜ + a·∇u = c; the paper's
        baseline; a baseline that learns the initial value, too.
    width : int, default=15
        Width of the networks.
    solver : {"euler", "midpoint", "heun", "bosh3", "tsit5", "dopri5", "dopri8"}, default="midpoint"
        The method of integration.
    steps : int, default=6
        Equal steps to integrate with, unless `rtol` is given.
    rtol : float or None, default=None
        Keep to this tolerance instead of making equal steps.
    adjoint : {"checkpoint", "backsolve", "direct"}, default="checkpoint"
        How gradients are taken through the solve.
    learning_rate : float, default=5e-3
        Step size of AdamW.
    weight_decay : float, default=0.0
        Weight decay of AdamW.
    max_iter : int, default=500
        Epochs of training, at most.
    batch_size : int, default=64
        Rows in a step of training, at most.
    early_stopping : bool, default=True
        Hold rows out of training, and stop when the loss of those does not improve any more.
        Otherwise train for `max_iter` epochs, and choose the weights by the loss of all rows.
    validation_fraction : float, default=0.1
        The share of the rows to hold out.
    n_iter_no_change : int, default=100
        Epochs without improvement after which to stop.
    warm_start : bool, default=False
        Begin with the weights of the last fit, and keep its units.
    random_state : int, RandomState instance or None, default=None
        Seed of the weights, the rows that are held out and the order of the rows.
    verbose : bool, default=False
        Print a line an epoch.

    Attributes
    ----------
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if they had names.
    n_iter_ : int
        Epochs of training.
    loss_curve_ : list of float
        The loss of the rows that were held out, after every epoch.
    best_loss_ : float
        The loss of the weights that were kept.

    Examples
    --------
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
    def fit(self, X: Table, y: Table, sample_weight: Table = None) -> "CharacteristicRegressor":
        """Learn the values `y` at the places and times `X`, each of which counts as much as its `sample_weight`."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_features=2)
        rows = Rows(X, y.reshape(len(y), -1).astype(np.float64), check_weights(sample_weight, X)).distinct()
        if not self._goes_on():
            self.input_scale_ = _from_the_first_moment(rows)
            self.output_scale_ = Standardizer.fit(rows.targets, weights=rows.weights)
        self.has_one_value_ = y.ndim == 1
        objective = Pde(self._how(), X.shape[1], rows.targets.shape[1], self.method, self.width)
        seen = rows._replace(
            inputs=self.input_scale_.apply(rows.inputs), targets=self.output_scale_.apply(rows.targets)
        )
        self._train(objective, seen, members=1)
        return self

    def predict(self, X: Table) -> Float[np.ndarray, "rows *values"]:
        """The values at places and times."""
        X = self._check(X)
        (u,), (found,) = self.trained_.respond(self.input_scale_.apply(X))
        if not found.all():
            warnings.warn(
                f"No learned path leads to {(~found).sum()} of {len(found)} points, the first is number "
                f"{np.argmin(found)}; their values are those of paths that end nearby.",
                ConvergenceWarning,
                stacklevel=2,
            )
        values = self.output_scale_.inverse(u)
        return values[:, 0] if self.has_one_value_ else values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _from_the_first_moment(rows: Rows) -> Standardizer:
    """Places around their mean, and times from the earliest on, which is where the paths start, to one."""
    scale, times = Standardizer.fit(rows.inputs, weights=rows.weights), rows.inputs[:, -1]
    span = np.ptp(times) or 1.0
    return Standardizer((*scale.mean[:-1], float(times.min())), (*scale.std[:-1], float(span)))
