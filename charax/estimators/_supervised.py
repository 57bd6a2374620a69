"""The parameters and the training of the classifier and the regressor."""

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from sklearn.utils._param_validation import StrOptions

from charax.data import Standardizer
from charax.estimators._base import CONSTRAINTS, POSITIVE_INTEGER, AbstractEstimator
from charax.estimators._objectives import SupervisedObjective
from charax.estimators._rows import Rows
from charax.models import METHOD_NAMES, VectorArchitecture
from charax.train import table_recipe


class AbstractSupervisedEstimator(AbstractEstimator):
    """An ensemble of neural ODEs with linear readouts."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "method": [StrOptions(set(METHOD_NAMES))],
        "characteristic_dim": [POSITIVE_INTEGER],
        "augment_dim": [POSITIVE_INTEGER],
        "members": [POSITIVE_INTEGER, StrOptions({"auto"})],
        "max_iter": [POSITIVE_INTEGER, StrOptions({"auto"})],
        "batch_size": [POSITIVE_INTEGER, StrOptions({"auto"})],
        "weight_decay": [*CONSTRAINTS["weight_decay"], StrOptions({"auto"})],
    }

    def __init__(
        self,
        method="c-node",
        *,
        characteristic_dim=2,
        width=32,
        augment_dim=4,
        members: Any = "auto",
        solver="midpoint",
        steps=2,
        rtol=None,
        adjoint="checkpoint",
        learning_rate=1e-2,
        weight_decay: Any = "auto",
        max_iter: Any = "auto",
        batch_size: Any = "auto",
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

    def _weight_decay(self, rows: int) -> float:
        return table_recipe(rows).weight_decay if self.weight_decay == "auto" else self.weight_decay

    def _ema(self, rows: int) -> float | None:
        return table_recipe(rows).ema

    def _loop_length(self, rows: int) -> tuple[int, int]:
        recipe = table_recipe(rows)
        return (
            recipe.epochs if self.max_iter == "auto" else self.max_iter,
            recipe.batch_size if self.batch_size == "auto" else self.batch_size,
        )

    def _fit_rows(self, rows: Rows, *, is_classification: bool) -> None:
        """Fit the ensemble to rows without duplicates, whose inputs are not yet standardized."""
        if not self._is_warm_start():
            self.input_scale_ = Standardizer.fit(rows.inputs, weights=rows.weights)
        objective = SupervisedObjective(
            self._solver_config(),
            rows.inputs.shape[1],
            rows.targets.shape[1],
            VectorArchitecture(self.method, self.width, self.augment_dim, self.characteristic_dim),
            is_classification,
        )
        scaled = rows._replace(inputs=self.input_scale_.apply(rows.inputs))
        recipe = table_recipe(len(rows.weights))
        self.members_ = recipe.members if self.members == "auto" else int(self.members)
        self._fit_ensemble(objective, scaled, members=self.members_)

    def _predict_mean(self, X: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows outputs"]:
        """The mean over the members."""
        return self.ensemble_.predict(self.input_scale_.apply(X)).mean(axis=0, dtype=np.float64)
