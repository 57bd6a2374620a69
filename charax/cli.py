"""`charax …`: parse, call, and tell. Everything else is in the library."""

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table
from tyro.extras import SubcommandApp

from charax.experiments.table1 import Budget
from charax.models import Method
from charax.training import ClassifySettings, Run

Positional = tyro.conf.Positional
Json = Annotated[bool, tyro.conf.arg(name="json", help="Print one JSON object on standard output instead of a table.")]

app = SubcommandApp()
reproduce = SubcommandApp()
app.command(reproduce, name="reproduce")
train = SubcommandApp()
app.command(train, name="train")
data = SubcommandApp()
app.command(data, name="data")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0 for success, 2 for bad usage or input, 1 for anything else."""
    _keep_compiled_programs()
    try:
        app.cli(
            prog="charax",
            description="Characteristic Neural ODEs.",
            args=arguments,
            config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes),
        )
    except (ValueError, OSError) as error:
        return _fail(error, 2)
    except RuntimeError as error:
        return _fail(error, 1)
    except KeyboardInterrupt as stop:
        # A run that a signal stopped says which, and how to go on.
        return _fail(str(stop) or "interrupted", 128 + getattr(stop, "signal", signal.SIGINT))
    return 0


def _keep_compiled_programs() -> None:
    """From one command to the next; JAX's own variables, which it has read by now, move the place."""
    import jax

    if jax.config.values["jax_compilation_cache_dir"] is None:
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "charax" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(cache))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def _fail(reason: object, status: int) -> int:
    # Not folded to the width of the terminal, so that a path in it stays whole.
    Console(stderr=True).print(f"charax: {reason}", style="red", markup=False, highlight=False, soft_wrap=True)
    return status


def _tell(answer: Mapping[str, Any], table: Table, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(answer) + "\n")
    else:
        Console().print(table)


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
    _tell({"rows": [row._asdict() for row in rows]}, table, as_json=as_json)


@train.command(name="classify")
def train_classify(
    settings: ClassifySettings, *, name: str | None = None, output: Path = Path("runs"), as_json: Json = False
) -> None:
    """Train a classifier on embedded, downloaded or own data.

    Args:
        name: Name of the run; by default made from the data and the method.
        output: Folder in which the run's own folder is made.
    """
    from charax.training import make_progress, name_run, train

    folder = output / (name or name_run(output, settings.label))
    _tell_run(train(settings, folder, progress=make_progress()), as_json=as_json)


@app.command
def resume(run: Positional[Path], *, as_json: Json = False) -> None:
    """Go on with a run that was interrupted.

    Args:
        run: Folder of the run.
    """
    from charax.training import make_progress, resume

    _tell_run(resume(run, progress=make_progress()), as_json=as_json)


def _tell_run(run: Run, *, as_json: bool) -> None:
    from charax.plots import draw_run

    answer = run.summary()
    pictures = draw_run(run, run.settings.prepare())
    table = _number_table({name: value for name, value in answer.items() if name != "run"}, f"Run {run.folder}")
    table.caption = f"Pictures: {', '.join(str(picture) for picture in pictures)}"
    _tell(answer, table, as_json=as_json)


def _number_table(numbers: Mapping[str, float | None], title: str) -> Table:
    table = Table("measured", title=title)
    table.add_column("value", justify="right")
    for name, value in numbers.items():
        table.add_row(
            name.replace("_", " "), "-" if value is None else f"{value:,}" if value == int(value) else f"{value:.4f}"
        )
    return table


@app.command
def evaluate(
    run: Positional[Path], *, split: Literal["train", "validation", "test"] = "test", as_json: Json = False
) -> None:
    """The metrics of a trained model on its data.

    Args:
        run: Folder of the run.
        split: The part of the data.
    """
    from charax.training import evaluate

    answer = evaluate(run, split)
    _tell({"run": str(run), "split": split, **answer}, _number_table(answer, f"{run} on {split}"), as_json=as_json)


@app.command
def predict(
    run: Positional[Path], inputs: Positional[Path], *, output: Path = Path("predictions.csv"), as_json: Json = False
) -> None:
    """The class and the probabilities of new inputs, as a CSV file.

    Args:
        run: Folder of the run.
        inputs: An .npz, .csv, .parquet, image, or folder of images.
        output: The file to write.
    """
    from charax.training import predict

    predictions = predict(run, inputs)
    predictions.write(output)
    table = Table("input", "class", title=f"Predictions, all of them in {output}")
    table.add_column("probability", justify="right")
    for row in predictions.rows()[:10]:
        table.add_row(*row[:2], f"{float(max(row[2:], key=float)):.3f}")
    _tell({"output": str(output), "predictions": len(predictions.names)}, table, as_json=as_json)


@data.command(name="list")
def data_list(*, as_json: Json = False) -> None:
    """The data sets that are known by name."""
    from charax.data import DATASETS

    table = Table("name", "what", title="Data sets; a path to an .npz, .csv, .parquet or folder of images works too")
    for name, source in DATASETS.items():
        table.add_row(name, source.description)
    rows = [{"dataset": name, "description": source.description} for name, source in DATASETS.items()]
    _tell({"rows": rows}, table, as_json=as_json)


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
    _tell({"dataset": name, "folder": str(folder)}, table, as_json=as_json)


@reproduce.command(name="propositions")
def reproduce_propositions(*, seed: int = 0, output: Path = Path("runs/propositions"), as_json: Json = False) -> None:
    """The paper's propositions in numbers, with a picture each.

    Args:
        seed: Seed of every random number.
        output: Folder for the pictures and the numbers.
    """
    from charax.experiments import propositions
    from charax.plots import draw_propositions

    output.mkdir(parents=True, exist_ok=True)  # before the work, so that a bad path is known at once
    result = propositions.run(seed=seed)
    answer = result.to_json()
    pictures = draw_propositions(result, output)
    (output / "propositions.json").write_text(json.dumps(answer, indent=2) + "\n")
    table = Table("proposition", "measured", title="The paper's propositions")
    table.add_column("value", justify="right")
    for proposition, numbers in answer.items():
        for i, (name, value) in enumerate((name, value) for name, value in numbers.items() if name != "refusal"):
            shown = f"{value:,}" if isinstance(value, int) else f"{value:.1e}"
            table.add_row("" if i else proposition.replace("_", " "), name.replace("_", " "), shown)
    table.caption = f"Pictures: {', '.join(str(picture) for picture in pictures)}"
    _tell(answer, table, as_json=as_json)


@reproduce.command(name="table1")
def reproduce_table1(
    *,
    budget: Budget = "smoke",
    dataset: tuple[str, ...] = (),
    method: tuple[Method, ...] = (),
    seeds: int | None = None,
    output: Path | None = None,
    as_json: Json = False,
) -> None:
    """The paper's Table 1: accuracy, evaluations and parameters of eight methods. Interrupted, it goes on where it was.

    Args:
        budget: smoke: digits, minutes. cpu: the paper's data, narrower and shorter. paper: its own setting, for a GPU.
        dataset: Only these data sets.
        method: Only these methods.
        seeds: Seeds per row, instead of the budget's.
        output: Folder of the runs, the table and the picture; by default runs/table1-BUDGET.
    """
    from charax.experiments import table1
    from charax.plots import draw_dynamics, draw_run
    from charax.training import make_progress

    folder = output or Path("runs") / f"table1-{budget}"
    result = table1.run(budget, datasets=dataset, methods=method, seeds=seeds, folder=folder, progress=make_progress())
    rows = result.rows()
    (folder / "table1.json").write_text(
        json.dumps({"budget": budget, "changed": result.changed, "rows": rows}, indent=2)
    )
    draw_dynamics(result.compared, folder / "table1.png")
    for one in result.compared:
        draw_run(one.runs[0], one.runs[0].settings.prepare())
    table = Table("data set", "method", title=f"Table 1, budget {budget}")
    for column in ("accuracy", "in the paper", "NFE", "in the paper", "parameters", "in the paper", "seconds"):
        table.add_column(column, justify="right")
    for row in rows:
        spread = "" if row["accuracy_sd"] is None else f" ± {row['accuracy_sd']:.2%}"
        table.add_row(
            row["dataset"],
            row["method"],
            f"{row['accuracy_mean']:.2%}{spread}",
            _or_dash(row["accuracy_paper"], ".2%"),
            f"{row['nfe']:.0f}",
            _or_dash(row["nfe_paper"], ".0f"),
            f"{row['parameters']:,}",
            _or_dash(row["parameters_paper"], ",.0f"),
            f"{row['seconds']:.0f}",
        )
    table.caption = f"Changed from the paper: {result.changed}. Pictures: {folder}/table1.png, {folder}/*/plots"
    _tell({"rows": rows}, table, as_json=as_json)


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


if __name__ == "__main__":
    sys.exit(main())
