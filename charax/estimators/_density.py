"""Densities of rows of numbers."""

from numbers import Integral
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Float
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from charax.data import Standardizer
from charax.estimators._base import CONSTRAINTS, AbstractTrainedEstimator, Table, check_weights
from charax.estimators._objectives import Density
from charax.estimators._rows import Rows
from charax.models.flows import ContinuousFlow, VectorFlowDesign


class FlowDensity(ClassNamePrefixFeaturesOutMixin, TransformerMixin, AbstractTrainedEstimator):
    """A density as a flow: a learned field carries rows to the normal distribution, and back.

    Columns are standardised. Equal rows count as one with the sum of their weights.

    Parameters
    ----------
    method : {"node", "c-node"}, default="c-node"
        A plain field, or a characteristic one.
    characteristic_dim : int, default=8
        Dimensions k of the characteristic.
    width : int, default=32
        Width of the networks.
    solver : {"euler", "midpoint", "heun", "bosh3", "tsit5", "dopri5", "dopri8"}, default="midpoint"
        The method of integration.
    steps : int, default=8
        Equal steps to integrate with, unless `rtol` is given.
    rtol : float or None, default=None
        Keep to this tolerance instead of making equal steps.
    adjoint : {"checkpoint", "backsolve", "direct"}, default="checkpoint"
        How gradients are taken through the solve.
    learning_rate : float, default=5e-3
        Step size of AdamW.
    weight_decay : float, default=0.05
        Weight decay of AdamW.
    max_iter : int, default=200
        Epochs of training, at most.
    batch_size : int, default=256
        Rows in a step of training, at most.
    early_stopping : bool, default=True
        Hold rows out of training, and stop when the loss of those does not improve any more.
        Otherwise train for `max_iter` epochs, and choose the weights by the loss of all rows.
    validation_fraction : float, default=0.1
        The share of the rows to hold out.
    n_iter_no_change : int, default=30
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
        "characteristic_dim": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        method="c-node",
        *,
        characteristic_dim=8,
        width=32,
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
        n_iter_no_change=30,
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
    def fit(self, X: Table, y: Table = None, sample_weight: Table = None) -> "FlowDensity":
        """Learn the density of the rows of `X`, of which each counts as much as its `sample_weight`."""
        X = validate_data(self, X, dtype=np.float64)
        rows = Rows(X, np.zeros((len(X), 0)), check_weights(sample_weight, X)).distinct()
        if not self._goes_on():
            self.input_scale_ = Standardizer.fit(rows.inputs, weights=rows.weights)
        design = VectorFlowDesign(self.method, self.width, characteristic_dim=self.characteristic_dim)
        objective = Density(self._how(), X.shape[1], 0, design)
        self._train(objective, rows._replace(inputs=self.input_scale_.apply(rows.inputs)), members=1)
        return self

    def score_samples(self, X: Table) -> Float[np.ndarray, "rows"]:
        """The log-density of every row."""
        return self._forward(X)[1] - np.log(self.input_scale_.std).sum()

    def score(self, X: Table, y: Table = None) -> float:
        """The mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def transform(self, X: Table) -> Float[np.ndarray, "rows features"]:
        """Where the flow carries the rows: normal numbers, if it learned their density."""
        return self._forward(X)[0]

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Float[np.ndarray, "samples features"]:
        """New rows."""
        check_is_fitted(self)
        flow = self.trained_.model(0)
        assert isinstance(flow, ContinuousFlow)
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        drawn = flow.sample(n_samples, key=jax.random.key(seed), solver=self._how().together())
        return self.input_scale_.inverse(np.asarray(drawn))

    def _forward(self, X: Table) -> tuple[Float[np.ndarray, "rows features"], Float[np.ndarray, "rows"]]:
        X = self._check(X)
        mapped, log_density = self.trained_.respond(self.input_scale_.apply(X))
        return mapped[0].astype(np.float64), log_density[0].astype(np.float64)

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_
