"""The parameters and the training that the classifier and the regressor share."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from sklearn.utils._param_validation import Interval, StrOptions

from charax.data import Standardizer
from charax.estimators._base import CONSTRAINTS, AbstractTrainedEstimator
from charax.estimators._objectives import Supervised
from charax.estimators._rows import Rows
from charax.models import METHOD_NAMES, VectorArchitecture


class AbstractCNODE(AbstractTrainedEstimator):
    """A few neural ODEs with linear readouts, each validated with other rows; what they say is averaged."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "method": [StrOptions(set(METHOD_NAMES))],
        "characteristic_dim": [Interval(Integral, 1, None, closed="left")],
        "augment_dim": [Interval(Integral, 1, None, closed="left")],
        "members": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        method="c-node",
        *,
        characteristic_dim=2,
        width=32,
        augment_dim=4,
        members=10,
        solver="midpoint",
        steps=2,
        rtol=None,
        adjoint="checkpoint",
        learning_rate=1e-2,
        weight_decay=2.0,
        max_iter=100,
        batch_size=256,
        early_stopping=True,
        validation_fraction=0.1,
        n_iter_no_change=20,
        warm_start=False,
        random_state=None,
        verbose=False,
    ):
        self.method = method
        self.characteristic_dim = characteristic_dim
        self.width = width
        self.augment_dim = augment_dim
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

    def _learn(self, rows: Rows, *, classifies: bool) -> None:
        """Train on distinct rows, the inputs of which have the units of the data."""
        if not self._goes_on():
            self.input_scale_ = Standardizer.fit(rows.inputs, weights=rows.weights)
        objective = Supervised(
            self._how(),
            rows.inputs.shape[1],
            rows.targets.shape[1],
            VectorArchitecture(self.method, self.width, self.augment_dim, self.characteristic_dim),
            classifies,
        )
        self._train(objective, rows._replace(inputs=self.input_scale_.apply(rows.inputs)), members=self.members)

    def _respond(self, X: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows outputs"]:
        return self.trained_.respond(self.input_scale_.apply(X)).mean(axis=0, dtype=np.float64)
