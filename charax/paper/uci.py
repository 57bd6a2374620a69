"""Conditional densities of the UCI data: FlowRegressor against published and simple predictive distributions."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from charax import data, estimators, train
from charax.models import FlowMethod
from charax.paper._experiment import AbstractExperiment
from charax.paper._records import RecordJob
from charax.paper._report import Column, Report
from charax.train import AbstractProgress, Sweep

if TYPE_CHECKING:
    import numpy as np

Name = Literal["boston", "concrete", "energy", "kin8nm", "power", "wine", "yacht"]

MC_DROPOUT: dict[Name, float] = {
    "boston": -2.40,
    "concrete": -2.94,
    "energy": -1.21,
    "kin8nm": 1.14,
    "power": -2.81,
    "wine": -0.93,
    "yacht": -1.25,
}
"""Mean test log-likelihood of MC dropout on the same splits, as published."""

SPLITS = 20
"""The number of published splits of each data set."""

_PROBABILITIES = tuple(i / 20 for i in range(1, 20))
"""The quantiles by which the flow and the forest are compared."""

_COLUMNS = (
    Column("data set", "dataset"),
    Column("flow", "log_likelihood_mean", ".3f", "log_likelihood_sd"),
    Column("MC dropout", "log_likelihood_mc_dropout", ".2f"),
    Column("linear Gaussian", "log_likelihood_linear", ".3f"),
    Column("RMSE", "rmse_mean", ".3f"),
    Column("pinball loss", "pinball_mean", ".4f"),
    Column("forest's", "pinball_forest", ".4f"),
    Column("splits", "splits", "d"),
    Column("s", "seconds", ".1f"),
)


@dataclass(frozen=True)
class UCI(AbstractExperiment):
    """Test log-likelihoods of conditional densities on seven UCI data sets in their published splits. It resumes."""

    name: ClassVar[str] = "uci"

    dataset: tuple[Name, ...] = ()
    """Only these data sets."""
    splits: int = SPLITS
    """Splits per data set, at most 20."""
    method: FlowMethod = "c-node"
    """The field of the flows."""
    members: int = 5
    """Flows per ensemble."""
    epochs: int | None = None
    """Maximum number of epochs, instead of the estimator's default."""

    def run(self, folder: Path, sweep: Sweep) -> Report:
        train.check_range(self, least={"splits": 1, "members": 1, "epochs": 1})
        if self.splits > SPLITS:
            raise ValueError(f"splits must be at most {SPLITS}, the number of published ones, got {self.splits}")
        names = self.dataset or tuple(MC_DROPOUT)
        groups = sweep.run_groups([self._jobs(name, folder) for name in names])
        return Report(
            name=self.name,
            title=f"Test log-likelihood of UCI data, mean ± standard deviation of {self.splits} splits",
            columns=_COLUMNS,
            answer={"rows": [self._row(name, found) for name, found in zip(names, groups, strict=True)]},
            note="FlowRegressor with one set of defaults: an ensemble of flows, trained by matching. The pinball loss "
            "is the mean over 19 quantiles, lower is better; the forest's is that of a quantile regression forest.",
            record={"method": self.method, "members": self.members, "splits": self.splits},
        )

    def _jobs(self, name: Name, folder: Path) -> list[RecordJob]:
        """The splits of a data set."""
        flags = {"method": self.method, "members": self.members, "epochs": self.epochs}
        # All parameters, so that a result of other defaults is not taken for one of today's.
        settings = {**flags, "parameters": _regressor(**flags).get_params()}
        return [
            RecordJob(
                folder / "records" / f"{name}-split{split}.json",
                settings,
                _record,
                {"name": name, "split": split, **flags},
            )
            for split in range(self.splits)
        ]

    def _row(self, name: Name, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        average = lambda key: train.mean_and_sd([one[key] for one in results])
        return {
            "dataset": name,
            "method": self.method,
            "log_likelihood_mean": average("log_likelihood")[0],
            "log_likelihood_sd": average("log_likelihood")[1],
            "log_likelihood_mc_dropout": MC_DROPOUT[name],
            "log_likelihood_linear": average("linear")[0],
            "rmse_mean": average("rmse")[0],
            "pinball_mean": average("pinball")[0],
            "pinball_forest": average("pinball_forest")[0],
            "splits": self.splits,
            "seconds": average("seconds")[0],
        }


def _record(
    name: Name, *, split: int, method: FlowMethod, members: int, epochs: int | None, progress: AbstractProgress
) -> dict[str, Any]:
    """The result of one split."""
    regressor = _regressor(method, members, epochs).set_params(random_state=split)
    return evaluate(regressor, name, split)


def _regressor(method: FlowMethod, members: int, epochs: int | None) -> "estimators.FlowRegressor":
    regressor = estimators.FlowRegressor(method, members=members)
    return regressor if epochs is None else regressor.set_params(max_iter=epochs)


def evaluate(regressor: "estimators.FlowRegressor", name: Name, number: int) -> dict[str, float]:
    """Fit a flow, a linear Gaussian and a forest to one split, and evaluate them on its test rows."""
    import numpy as np

    split = data.load_uci(name, number)
    began = time.monotonic()
    regressor.fit(split.train_x, split.train_y)
    log_likelihood = regressor.score(split.test_x, split.test_y)
    seconds = time.monotonic() - began
    error = regressor.predict(split.test_x) - split.test_y
    quantiles = regressor.predict_quantiles(split.test_x, _PROBABILITIES)
    return {
        "log_likelihood": log_likelihood,
        "linear": linear_log_likelihood(split),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "pinball": pinball_loss(quantiles, split.test_y),
        "pinball_forest": pinball_loss(forest_quantiles(split, _PROBABILITIES), split.test_y),
        "seconds": seconds,
    }


def linear_log_likelihood(split: "data.UCISplit") -> float:
    """The mean log-likelihood of a normal distribution with a linear mean and one variance, fitted by least squares."""
    import numpy as np

    design = lambda x: np.column_stack([x, np.ones(len(x))])
    coefficients, *_ = np.linalg.lstsq(design(split.train_x), split.train_y, rcond=None)
    residual = split.train_y - design(split.train_x) @ coefficients
    variance = float(residual @ residual) / max(len(residual) - len(coefficients), 1)
    error = split.test_y - design(split.test_x) @ coefficients
    return float(np.mean(-0.5 * error**2 / variance)) - 0.5 * math.log(2 * math.pi * variance)


def forest_quantiles(split: "data.UCISplit", probabilities: tuple[float, ...], *, trees: int = 200) -> "np.ndarray":
    """Quantiles of a quantile regression forest (Meinshausen): of the training targets, weighted by shared leaves."""
    import numpy as np
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(trees, min_samples_leaf=5, random_state=0).fit(split.train_x, split.train_y)
    order = np.argsort(split.train_y)
    leaves, asked = forest.apply(split.train_x)[order], forest.apply(split.test_x)
    weights = np.zeros((len(asked), len(leaves)))
    for own, test in zip(leaves.T, asked.T, strict=True):
        shared = test[:, None] == own
        weights += shared / shared.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(weights, axis=1) / trees
    position = np.stack([(cumulative < p).sum(axis=1) for p in probabilities], axis=1)
    return split.train_y[order][np.minimum(position, len(leaves) - 1)]


def pinball_loss(quantiles: "np.ndarray", y: "np.ndarray") -> float:
    """The mean pinball loss of predicted quantiles at `_PROBABILITIES`."""
    import numpy as np

    error, p = y[:, None] - quantiles, np.asarray(_PROBABILITIES)
    return float(np.mean(np.maximum(p * error, (p - 1) * error)))
