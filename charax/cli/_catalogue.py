"""What there is: models and data sets."""

from charax import data, models
from charax.cli._print import Json, Positional, print_answer


def list_models(*, as_json: Json = False) -> None:
    """List the paper's image classifiers with their parameter counts and the paper's."""
    rows = models.count_table()
    difference = lambda row: (
        "equal" if row.parameters == row.parameters_paper else f"{row.parameters / row.parameters_paper - 1:+.1%}"
    )
    print_answer(
        {"rows": [row._asdict() for row in rows]},
        ["data set", "method", "parameters", "in the paper", "difference"],
        [
            [row.dataset, row.method, f"{row.parameters:,}", f"{row.parameters_paper:,}", difference(row)]
            for row in rows
        ],
        title="Image classifiers of the paper's Table 1",
        note="SVHN's models have CIFAR-10's layers. The second-order ones are truly second order here.",
        as_json=as_json,
    )


def list_datasets(*, as_json: Json = False) -> None:
    """List the data sets that are known by name."""
    rows = [{"dataset": name, "description": source.description} for name, source in data.DATASETS.items()]
    print_answer(
        {"rows": rows},
        ["name", "description"],
        [list(row.values()) for row in rows],
        title="Data sets; a path to an .npz, .csv, .parquet or folder of images works, too",
        as_json=as_json,
    )


def fetch_dataset(name: Positional[str], *, as_json: Json = False) -> None:
    """Download and verify a data set, or find it under CHARAX_DATA or in the cache.

    Args:
        name: Name of the data set.
    """
    folder = data.fetch(name)
    answer = {"dataset": name, "folder": str(folder)}
    print_answer(answer, ["data set"], [[name]], note=f"Folder: {folder}", as_json=as_json)
