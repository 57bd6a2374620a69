"""Regression on rows of numbers."""

import numpy as np
from jaxtyping import Float
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from charax.data import Standardizer
from charax.estimators._base import Table, check_weights
from charax.estimators._rows import Rows
from charax.estimators._supervised import AbstractCNODE


class CNODERegressor(RegressorMixin, AbstractCNODE):
    """A regressor that carries rows along learned characteristics to where their values are linear.

    Inputs are standardised, and so are values. Equal rows count as one with the sum of their weights.

    Parameters
    ----------
    method : str, default="c-node"
        One of the paper's eight: node, c-node, anode, anode+c-node, 2nd-order, 2nd-order+c-node, il-node,
        il-node+c-node.
    characteristic_dim : int, default=2
        Dimensions k of the characteristic, for those with one.
    width : int, default=32
        Width of the networks.
    augment_dim : int, default=4
        Columns that ANODE, IL-NODE and second-order methods add.
    members : int, default=10
        Models whose answers are averaged, each of which is validated with other rows.
    solver : {"euler", "midpoint", "heun", "bosh3", "tsit5", "dopri5", "dopri8"}, default="midpoint"
        The method of integration.
    steps : int, default=2
        Equal steps to integrate with, unless `rtol` is given.
    rtol : float or None, default=None
        Keep to this tolerance instead of making equal steps.
    adjoint : {"checkpoint", "backsolve", "direct"}, default="checkpoint"
        How gradients are taken through the solve.
    learning_rate : float, default=1e-2
        Step size of AdamW.
    weight_decay : float, default=2.0
        Weight decay of AdamW.
    max_iter : int, default=100
        Epochs of training, at most.
    batch_size : int, default=256
        Rows in a step of training, at most.
    early_stopping : bool, default=True
        Hold rows out of training, and stop when the loss of those does not improve any more.
        Otherwise train for `max_iter` epochs, and choose the weights by the loss of all rows.
    validation_fraction : float, default=0.1
        The share of the rows to hold out, others for every member.
    n_iter_no_change : int, default=20
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
    from sklearn.datasets import load_diabetes
    from charax.estimators import CNODERegressor

    X, y = load_diabetes(return_X_y=True)
    regressor = CNODERegressor(max_iter=20, members=2, random_state=0).fit(X, y)
    assert regressor.predict(X[:3]).shape == (3,)
    ```
    """

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Table, y: Table, sample_weight: Table = None) -> "CNODERegressor":
        """Learn the values `y` of the rows of `X`, one or several, each row as important as its `sample_weight`."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        weights = check_weights(sample_weight, X)
        rows = Rows(X, y.reshape(len(y), -1).astype(np.float64), weights).distinct()
        if not self._goes_on():
            self.output_scale_ = Standardizer.fit(rows.targets, weights=rows.weights)
        self.has_one_value_ = y.ndim == 1
        self._learn(rows._replace(targets=self.output_scale_.apply(rows.targets)), classifies=False)
        return self

    def predict(self, X: Table) -> Float[np.ndarray, "rows *outputs"]:
        """The values of every row."""
        X = self._check(X)
        values = self.output_scale_.inverse(self._respond(X))
        return values[:, 0] if self.has_one_value_ else values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
