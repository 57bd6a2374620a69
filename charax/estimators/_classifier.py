"""Classification."""

import numpy as np
from jaxtyping import Float, Shaped
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from charax.estimators._base import ArrayLike, check_sample_weight
from charax.estimators._rows import Rows
from charax.estimators._supervised import AbstractSupervisedEstimator


class CNODEClassifier(ClassifierMixin, AbstractSupervisedEstimator):
    """A classifier: an ensemble of characteristic neural ODEs with linear readouts.

    Features are standardized. Equal rows are merged into one with the sum of their weights.

    Args:
        method (str, default="c-node"): One of the methods of the paper: "node", "c-node", "anode", "anode+c-node",
            "2nd-order", "2nd-order+c-node", "il-node" or "il-node+c-node".
        characteristic_dim (int, default=2): The number k of characteristic dimensions. Only used by C-NODE methods.
        width (int, default=32): The width of the hidden layers.
        augment_dim (int, default=4): The number of dimensions that ANODE, IL-NODE and second-order methods add to the
            features.
        members (int or "auto", default="auto"): The number of models in the ensemble. Predictions are averaged over the
            members. "auto": chosen from the number of rows (`charax.train.table_recipe`), fewer for large data.
        solver ({"euler", "midpoint", "heun", "bosh3", "tsit5", "dopri5", "dopri8"}, default="midpoint"): The ODE
            solver.
        steps (int, default=2): The number of fixed steps of the solver. Ignored if `rtol` is given.
        rtol (float or None, default=None): The relative and absolute tolerance of adaptive steps, which all solvers but
            "euler" can take; None for fixed steps.
        adjoint ({"checkpoint", "backsolve", "direct"}, default="checkpoint"): How gradients are computed. "checkpoint":
            exact gradients of the steps, in bounded memory. "backsolve": the continuous adjoint integrated backwards,
            approximate, in constant memory. "direct": differentiation through the solver's loop.
        learning_rate (float, default=1e-2): The learning rate of AdamW.
        weight_decay (float or "auto", default="auto"): The decoupled weight decay of AdamW. "auto": 2 up to 2,000 rows,
            and less in proportion for more.
        max_iter (int or "auto", default="auto"): The maximum number of epochs. "auto": chosen from the number of rows,
            fewer for large data.
        batch_size (int or "auto", default="auto"): The maximum number of rows per mini-batch. "auto": chosen from the
            number of rows.
        early_stopping (bool, default=True): Whether to set rows aside for validation, to select the weights by their
            loss, and to stop when it no longer improves. If False, training takes `max_iter` epochs, and the weights
            are selected by the loss of all rows.
        validation_fraction (float, default=0.1): The proportion of the rows to set aside for validation, different rows
            for each member. Only used if `early_stopping` is True.
        n_iter_no_change (int, default=20): The number of epochs without improvement after which training stops. Only
            used if `early_stopping` is True.
        warm_start (bool, default=False): Whether `fit` starts from the weights of the previous call, with the same
            standardization, instead of from new weights.
        random_state (int, RandomState instance or None, default=None): The seed of the initial weights, the validation
            rows and the mini-batches. Pass an int for reproducible results.
        verbose (bool, default=False): Whether to print one line per epoch.

    Attributes:
        classes_ (ndarray of shape (n_classes,)): The class labels.
        n_features_in_ (int): The number of features seen during `fit`.
        feature_names_in_ (ndarray of shape (n_features_in_,)): The names of the features seen during `fit`. Defined
            only if all of them are strings.
        members_ (int): The number of models.
        n_iter_ (int): The number of epochs that training took.
        loss_curve_ (list of float): The validation loss after each epoch, averaged over the members; the loss of all
            rows if `early_stopping` is False.
        best_loss_ (float): The loss of the selected weights, averaged over the members.
        input_scale_ (Standardizer): The standardization of the features.
        ensemble_ (Ensemble): The selected weights; `ensemble_.model(i)` is member number i.

    ```python
    from sklearn.datasets import load_iris
    from charax.estimators import CNODEClassifier

    X, y = load_iris(return_X_y=True, as_frame=False)
    classifier = CNODEClassifier(max_iter=20, members=2, random_state=0).fit(X, y)
    assert classifier.predict_proba(X[:3]).shape == (3, 3)
    ```
    """

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> "CNODEClassifier":
        """Fit the classifier.

        Args:
            X (array-like of shape (n_samples, n_features)): The training data.
            y (array-like of shape (n_samples,)): The class labels.
            sample_weight (array-like of shape (n_samples,), default=None): The sample weights; all 1 if None.

        Returns:
            The fitted estimator.

        Raises:
            ValueError: If the data or a parameter is invalid.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weights = check_sample_weight(sample_weight, X)
        self.classes_, labels = np.unique(y, return_inverse=True)
        rows = Rows(X, np.eye(len(self.classes_))[labels], weights).merge_duplicates()
        self._fit_rows(rows, is_classification=True)
        return self

    def predict_proba(self, X: ArrayLike) -> Float[np.ndarray, "rows classes"]:
        """Predict class probabilities.

        Args:
            X (array-like of shape (n_samples, n_features)): The samples.

        Returns:
            An array of shape (n_samples, n_classes), with the classes in the order of `classes_`.

        Raises:
            SolveError: If the solve fails for one of the samples.
        """
        probabilities = self._predict_mean(self._check_X(X))
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def predict(self, X: ArrayLike) -> Shaped[np.ndarray, "rows"]:
        """Predict class labels.

        Args:
            X (array-like of shape (n_samples, n_features)): The samples.

        Returns:
            The most probable class of each sample, an array of shape (n_samples,).

        Raises:
            SolveError: If the solve fails for one of the samples.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]
