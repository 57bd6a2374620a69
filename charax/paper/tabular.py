"""Densities of small tables: a C-NODE flow against a Gaussian and a kernel density estimate."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from charax.data import DensityData, Split, Standardizer
from charax.models.flows import VectorFlowDesign
from charax.nn import count_parameters
from charax.solve import Solver
from charax.tasks.density import DensityTask
from charax.train import AbstractProgress, Fitted, LoopConfig, OptimizerConfig, Problem, Silent, fit


class Plan(NamedTuple):
    """A table, and what is done to it before its density is learned."""

    loader: str
    components: int | None
    """Principal components that are kept of the standardised columns; None for the columns themselves."""


TABLES: dict[str, Plan] = {
    "iris": Plan("load_iris", None),
    "wine": Plan("load_wine", 6),
    "breast-cancer": Plan("load_breast_cancer", 8),
}


def load_table(name: str, *, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Train, validation and test rows; standardised, and rotated to principal components where `TABLES` says so.

    Everything is fitted to the training rows. Principal components are scaled to unit variance.
    """
    from sklearn import datasets
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    plan = TABLES[name]
    rows = getattr(datasets, plan.loader)().data
    order = np.random.default_rng(seed).permutation(len(rows))
    test, validation = len(rows) // 5, len(rows) // 10
    parts = rows[order[test + validation :]], rows[order[test : test + validation]], rows[order[:test]]
    scaler = StandardScaler().fit(parts[0])
    parts = [scaler.transform(part) for part in parts]
    if plan.components is not None:
        pca = PCA(plan.components, whiten=True, random_state=0).fit(parts[0])
        parts = [pca.transform(part) for part in parts]
    train, validation, test = (np.asarray(part, np.float32) for part in parts)
    return train, validation, test


NOISE, COPIES = 0.2, 32
"""The noise, in units of the data's own spread, and how many times each row is there."""

_FIRST_SPLIT = 3
"""The flow's settings were chosen on the splits before this one."""


class Held(NamedTuple):
    """Mean log-likelihoods of held-out rows."""

    flow: float
    gaussian: float
    kernel: float
    parameters: int
    nfe: float
    seconds: float
    """What the flow took."""


def evaluate(name: str, *, seed: int, progress: AbstractProgress | None = None) -> Held:
    """Fit all three to one split. The Gaussian and the kernels get the validation rows to fit, too."""
    train, validation, test = load_table(name, seed=seed)
    # Whitened with the mean and covariance of the training rows, a flow at rest is their Gaussian.
    mean, chol = train.mean(0), np.linalg.cholesky(np.cov(train.T))
    whiten = lambda rows: np.linalg.solve(chol, (rows - mean).T).T.astype(np.float32)
    parts = [Split(whiten(rows), np.zeros(len(rows), np.int32)) for rows in (train, validation, test)]
    fitted = _fit_flow(name, parts, seed, progress or Silent())
    scores = fitted.history[-1]
    both = np.concatenate([train, validation])
    return Held(
        flow=-scores["test_nll"] - float(np.log(np.diag(chol)).sum()),
        gaussian=float(_gaussian(both, test).mean()),
        kernel=float(_kernels(both, test, seed).mean()),
        parameters=count_parameters(fitted.model),
        nfe=scores["test_nfe"],
        seconds=fitted.seconds,
    )


def _fit_flow(name: str, parts: list[Split], seed: int, progress: AbstractProgress) -> Fitted:
    """A flow of the training rows, each of them many times with a little noise, so that none is learned by heart."""
    train, validation, test = parts
    rows = np.tile(train.inputs, (COPIES, 1))
    rows += NOISE * np.random.default_rng(seed).normal(size=rows.shape).astype(np.float32)
    noisy = Split(rows, np.zeros(len(rows), np.int32))
    data = DensityData(name, noisy, validation, test, levels=None, standardizer=Standardizer((0.0,), (1.0,)))
    design = VectorFlowDesign("c-node", width=32, characteristic_dim=4)
    task = DensityTask.of(data, design, Solver("dopri5", rtol=1e-3, atol=1e-3), kinetic=0.01)
    return fit(
        Problem(task, noisy, validation, test),
        LoopConfig(epochs=100, batch_size=512, seed=seed, patience=15),
        OptimizerConfig(learning_rate=1e-2, weight_decay=0.0, clip=5.0, ema=0.98),
        progress=progress,
    )


def run(
    tables: Sequence[str] = tuple(TABLES), *, seeds: int = 5, progress: AbstractProgress | None = None
) -> list[dict[str, Any]]:
    """A row for every table: means over splits, and whether the flow is as good as the better of the others."""
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    rows: list[dict[str, Any]] = []
    for name in tables:
        held = [evaluate(name, seed=_FIRST_SPLIT + i, progress=progress) for i in range(seeds)]
        mean = {field: float(np.mean([getattr(one, field) for one in held])) for field in Held._fields}
        rows.append(
            {
                "dataset": name,
                "dimensions": int(load_table(name, seed=0)[0].shape[1]),
                "method": "c-node",
                "parameters": held[0].parameters,
                "log_likelihood_mean": mean["flow"],
                "log_likelihood_sd": float(np.std([one.flow for one in held], ddof=1)) if seeds > 1 else None,
                "log_likelihood_gaussian": mean["gaussian"],
                "log_likelihood_kernel": mean["kernel"],
                "nfe": mean["nfe"],
                "seconds": mean["seconds"],
                "better_or_equal": mean["flow"] >= max(mean["gaussian"], mean["kernel"]),
            }
        )
    return rows


def _gaussian(train: np.ndarray, test: np.ndarray) -> Float[np.ndarray, "n"]:
    chol = np.linalg.cholesky(np.cov(train.T))
    white = np.linalg.solve(chol, (test - train.mean(0)).T)
    return -0.5 * (white**2).sum(0) - np.log(np.diag(chol)).sum() - 0.5 * test.shape[1] * np.log(2 * np.pi)


def _kernels(train: np.ndarray, test: np.ndarray, seed: int) -> Float[np.ndarray, "n"]:
    """Gaussian kernels with the bandwidth that five-fold cross-validation prefers."""
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.neighbors import KernelDensity

    folds = KFold(5, shuffle=True, random_state=seed)
    search = GridSearchCV(KernelDensity(), {"bandwidth": np.geomspace(0.05, 2.0, 40)}, cv=folds).fit(train)
    return search.best_estimator_.score_samples(test)
