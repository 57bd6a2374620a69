"""What there is: models and data sets."""

from rich.table import Table

from charax.cli.app import Json, Positional, app, data, tell


@app.command
def models(*, as_json: Json = False) -> None:
    """The paper's image classifiers with their parameter counts beside the paper's."""
    from charax.models import count_table

    rows = count_table()
    table = Table("data set", "method", title="Image classifiers of the paper's Table 1")
    for column in ("parameters", "in the paper", "difference"):
        table.add_column(column, justify="right")
    for dataset, method, ours, paper in rows:
        difference = "equal" if ours == paper else f"{ours / paper - 1:+.1%}"
        table.add_row(dataset, method, f"{ours:,}", f"{paper:,}", difference)
    table.caption = "SVHN's models have CIFAR-10's layers. The second-order ones are truly second order here."
    tell({"rows": [row._asdict() for row in rows]}, table, as_json=as_json)


@data.command(name="list")
def data_list(*, as_json: Json = False) -> None:
    """The data sets that are known by name."""
    from charax.data import DATASETS

    table = Table("name", "what", title="Data sets; a path to an .npz, .csv, .parquet or folder of images works too")
    for name, source in DATASETS.items():
        table.add_row(name, source.description)
    rows = [{"dataset": name, "description": source.description} for name, source in DATASETS.items()]
    tell({"rows": rows}, table, as_json=as_json)


@data.command(name="fetch")
def data_fetch(name: Positional[str], *, as_json: Json = False) -> None:
    """Download a data set and check it, or find it under CHARAX_DATA or in the cache.

    Args:
        name: Name of the data set.
    """
    from charax.data import fetch

    folder = fetch(name)
    table = Table("data set", "folder")
    table.add_row(name, str(folder))
    tell({"dataset": name, "folder": str(folder)}, table, as_json=as_json)
