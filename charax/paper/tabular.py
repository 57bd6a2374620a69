"""Densities of small tables: a C-NODE flow against a Gaussian and a kernel density estimate."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from charax import data, models, nn, solve, train
from charax.paper._experiment import AbstractExperiment
from charax.paper._records import RecordJob
from charax.paper._report import Column, Report
from charax.tasks import density
from charax.train import AbstractProgress, LoopConfig, OptimizerConfig, Splits, Sweep

if TYPE_CHECKING:
    import numpy as np

TableName = Literal["iris", "wine", "breast-cancer"]


class TableSource(NamedTuple):
    """A table, and what is done to it before its density is learned."""

    loader: str
    components: int | None
    """Principal components that are kept of the standardized columns; None for the columns themselves."""


TABLES: dict[TableName, TableSource] = {
    "iris": TableSource("load_iris", None),
    "wine": TableSource("load_wine", 6),
    "breast-cancer": TableSource("load_breast_cancer", 8),
}

NOISE, COPIES = 0.2, 32
"""The noise, in units of the data's standard deviation, and how many noisy copies of each row are trained on."""

_FIRST_SPLIT = 3
"""The settings of the flow were selected on the splits before this one."""

_COLUMNS = (
    Column("data set", "dataset"),
    Column("dimensions", "dimensions", "d"),
    Column("C-NODE flow", "log_likelihood_mean", ".3f", "log_likelihood_sd"),
    Column("Gaussian", "log_likelihood_gaussian", ".3f"),
    Column("kernels", "log_likelihood_kernel", ".3f"),
    Column("NFE", "nfe", ".0f"),
    Column("parameters", "parameters", ",d"),
    Column("s", "seconds", ".0f"),
)


@dataclass(frozen=True)
class HeldOut:
    """Mean log-likelihoods of held-out rows, and the cost of the flow."""

    flow: float
    gaussian: float
    kernel: float
    parameters: int
    nfe: float
    seconds: float


@dataclass(frozen=True)
class Tabular(AbstractExperiment):
    """Densities of iris, wine and breast cancer: a flow, a Gaussian and a kernel density estimate. It resumes."""

    name: ClassVar[str] = "tabular"

    table: tuple[TableName, ...] = ()
    """Only these tables."""
    seeds: int = 5
    """Splits per table."""
    epochs: int = 100
    """Maximum number of epochs of the flow."""

    def run(self, folder: Path, sweep: Sweep) -> Report:
        train.check_range(self, least={"seeds": 1, "epochs": 1})
        tables = self.table or tuple(TABLES)
        groups = sweep.run_groups([self._jobs(name, folder) for name in tables])
        return Report(
            name=self.name,
            title=f"Held-out log-likelihood of a row, mean of {self.seeds} splits",
            columns=_COLUMNS,
            answer={"rows": [_row(name, found) for name, found in zip(tables, groups, strict=True)]},
            record={"seeds": self.seeds},
        )

    def _jobs(self, name: TableName, folder: Path) -> list[RecordJob]:
        """The splits of a table."""
        settings = {"epochs": self.epochs}
        return [
            RecordJob(
                folder / "records" / f"{name}-split{seed}.json",
                settings,
                _record,
                {"name": name, "seed": seed, **settings},
            )
            for seed in range(_FIRST_SPLIT, _FIRST_SPLIT + self.seeds)
        ]


def _record(name: TableName, *, seed: int, epochs: int, progress: AbstractProgress) -> dict[str, Any]:
    return asdict(evaluate(name, seed=seed, epochs=epochs, progress=progress))


def _row(name: TableName, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over splits, and whether the flow is as good as the better of the others."""
    average = lambda key: train.mean_and_sd([record[key] for record in records])
    flow, gaussian, kernel = average("flow")[0], average("gaussian")[0], average("kernel")[0]
    return {
        "dataset": name,
        "dimensions": int(load_table(name, seed=0)[0].shape[1]),
        "method": "c-node",
        "parameters": records[0]["parameters"],
        "log_likelihood_mean": flow,
        "log_likelihood_sd": average("flow")[1],
        "log_likelihood_gaussian": gaussian,
        "log_likelihood_kernel": kernel,
        "nfe": average("nfe")[0],
        "seconds": average("seconds")[0],
        "better_or_equal": flow >= max(gaussian, kernel),
    }


def load_table(name: TableName, *, seed: int) -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    """Train, validation and test rows; standardized, and rotated to principal components where `TABLES` says so.

    Everything is fitted to the training rows. Principal components are scaled to unit variance.
    """
    import numpy as np
    from sklearn import datasets
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    source = TABLES[name]
    rows = getattr(datasets, source.loader)().data
    order = np.random.default_rng(seed).permutation(len(rows))
    test, validation = len(rows) // 5, len(rows) // 10
    parts = rows[order[test + validation :]], rows[order[test : test + validation]], rows[order[:test]]
    scaler = StandardScaler().fit(parts[0])
    parts = [scaler.transform(part) for part in parts]
    if source.components is not None:
        pca = PCA(source.components, whiten=True, random_state=0).fit(parts[0])
        parts = [pca.transform(part) for part in parts]
    train_rows, validation, test = (np.asarray(part, np.float32) for part in parts)
    return train_rows, validation, test


def evaluate(name: TableName, *, seed: int, epochs: int = 100, progress: AbstractProgress | None = None) -> HeldOut:
    """Fit all three to one split. The Gaussian and the kernels are fitted to the validation rows, too."""
    import numpy as np

    rows, validation, test = load_table(name, seed=seed)
    # Whitened with the mean and covariance of the training rows, a flow at rest is their Gaussian.
    mean, chol = rows.mean(0), np.linalg.cholesky(np.cov(rows.T))
    whiten = lambda part: np.linalg.solve(chol, (part - mean).T).T.astype(np.float32)
    fitted = _fit_flow([whiten(part) for part in (rows, validation, test)], seed, epochs, progress)
    metrics = fitted.history[-1]
    both = np.concatenate([rows, validation])
    return HeldOut(
        flow=-metrics["test_nll"] - float(np.log(np.diag(chol)).sum()),
        gaussian=float(_gaussian(both, test).mean()),
        kernel=float(_kernels(both, test, seed).mean()),
        parameters=nn.count_parameters(fitted.model),
        nfe=metrics["test_nfe"],
        seconds=fitted.seconds,
    )


def _fit_flow(
    parts: "list[np.ndarray]",
    seed: int,
    epochs: int,
    progress: AbstractProgress | None,
) -> "train.FitResult":
    """A flow of the training rows, each of them many times with a little noise, so that none is memorized."""
    import numpy as np

    rows, validation, test = parts
    noisy = np.tile(rows, (COPIES, 1))
    noisy += NOISE * np.random.default_rng(seed).normal(size=noisy.shape).astype(np.float32)
    splits = Splits(*(density.DensityBatch(part, np.zeros(len(part), np.int32)) for part in (noisy, validation, test)))
    task = density.DensityTask(
        design=models.VectorFlowDesign("c-node", width=32, characteristic_dim=4),
        solver=solve.Solver("dopri5", rtol=1e-3, atol=1e-3),
        spec=density.DensitySpec(rows.shape[1:], None, data.Standardizer((0.0,), (1.0,))),
        kinetic_penalty=0.01,
    )
    return train.fit(
        task,
        splits,
        LoopConfig(epochs=epochs, batch_size=512, seed=seed, patience=15),
        OptimizerConfig(learning_rate=1e-2, weight_decay=0.0, clip=5.0, ema=0.98),
        progress=progress,
    )


def _gaussian(rows: "np.ndarray", test: "np.ndarray") -> "np.ndarray":
    import numpy as np

    chol = np.linalg.cholesky(np.cov(rows.T))
    white = np.linalg.solve(chol, (test - rows.mean(0)).T)
    return -0.5 * (white**2).sum(0) - np.log(np.diag(chol)).sum() - 0.5 * test.shape[1] * np.log(2 * np.pi)


def _kernels(rows: "np.ndarray", test: "np.ndarray", seed: int) -> "np.ndarray":
    """Gaussian kernels with the bandwidth that five-fold cross-validation prefers."""
    import numpy as np
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.neighbors import KernelDensity

    folds = KFold(5, shuffle=True, random_state=seed)
    search = GridSearchCV(KernelDensity(), {"bandwidth": np.geomspace(0.05, 2.0, 40)}, cv=folds).fit(rows)
    return search.best_estimator_.score_samples(test)
