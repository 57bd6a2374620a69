"""`charax train …`, and what can be done with a run."""

from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.table import Table

from charax.cli.app import Json, Positional, app, number_table, tell, train
from charax.tasks.classification import ClassificationConfig
from charax.tasks.density import DensityConfig
from charax.tasks.forecast import ForecastConfig
from charax.tasks.pde import PDEConfig
from charax.train import Run, Settings

_SHOWN = 8
"""Rows of predictions that are printed; the file has all of them."""


@train.command(name="classify")
def train_classify(
    settings: ClassificationConfig, *, name: str | None = None, output: Path = Path("runs"), as_json: Json = False
) -> None:
    """Train a classifier on embedded, downloaded or own data.

    Args:
        name: Name of the run; by default made from the data and the method.
        output: Folder in which the run's own folder is made.
    """
    _train(settings, name, output, as_json=as_json)


@train.command(name="density")
def train_density(
    settings: DensityConfig, *, name: str | None = None, output: Path = Path("runs"), as_json: Json = False
) -> None:
    """Train a continuous normalizing flow on points, rows of numbers or images.

    Args:
        name: Name of the run; by default made from the data and the method.
        output: Folder in which the run's own folder is made.
    """
    _train(settings, name, output, as_json=as_json)


@train.command(name="pde")
def train_pde(
    settings: PDEConfig, *, name: str | None = None, output: Path = Path("runs"), as_json: Json = False
) -> None:
    """Learn a PDE from samples of its solution: a built-in problem, or your own file.

    Args:
        name: Name of the run; by default made from the data and the method.
        output: Folder in which the run's own folder is made.
    """
    _train(settings, name, output, as_json=as_json)


@train.command(name="forecast")
def train_forecast(
    settings: ForecastConfig, *, name: str | None = None, output: Path = Path("runs"), as_json: Json = False
) -> None:
    """Learn to forecast time series: the paper's, or your own file of series, times and values.

    Args:
        name: Name of the run; by default made from the data and the method.
        output: Folder in which the run's own folder is made.
    """
    _train(settings, name, output, as_json=as_json)


def _train(settings: Settings, name: str | None, output: Path, *, as_json: bool) -> None:
    from charax.train import make_progress, name_run, train

    folder = output / (name or name_run(output, settings.label))
    _tell_run(train(settings, folder, progress=make_progress()), as_json=as_json)


@app.command
def resume(run: Positional[Path], *, as_json: Json = False) -> None:
    """Go on with a run that was interrupted.

    Args:
        run: Folder of the run.
    """
    from charax.train import make_progress, resume

    _tell_run(resume(run, progress=make_progress()), as_json=as_json)


def _tell_run(run: Run, *, as_json: bool) -> None:
    from charax.plotting import draw_run

    answer = run.summary()
    pictures = draw_run(run, run.settings.prepare())
    table = number_table({name: value for name, value in answer.items() if name != "run"}, f"Run {run.folder}")
    table.caption = f"Pictures: {', '.join(str(picture) for picture in pictures)}"
    tell(answer, table, as_json=as_json)


@app.command
def evaluate(
    run: Positional[Path], *, split: Literal["train", "validation", "test"] = "test", as_json: Json = False
) -> None:
    """The metrics of a trained model on its data.

    Args:
        run: Folder of the run.
        split: The part of the data.
    """
    from charax.train import evaluate

    answer = evaluate(run, split)
    tell({"run": str(run), "split": split, **answer}, number_table(answer, f"{run} on {split}"), as_json=as_json)


@app.command
def predict(
    run: Positional[Path], inputs: Positional[Path], *, output: Path = Path("predictions.csv"), as_json: Json = False
) -> None:
    """What a trained model says about new inputs, as a CSV file: classes and probabilities, or values.

    Args:
        run: Folder of the run.
        inputs: An .npz, .csv, .parquet, image, or folder of images.
        output: The file to write.
    """
    from charax.train import predict

    predictions = predict(run, inputs)
    predictions.write(output)
    table = Table(*predictions.columns[: predictions.shown], title=f"Predictions, all of them in {output}")
    for row in predictions.rows[:_SHOWN]:
        table.add_row(*row[: predictions.shown])
    tell({"output": str(output), "predictions": len(predictions.rows)}, table, as_json=as_json)


@app.command
def sample(
    run: Positional[Path],
    *,
    number: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 64,
    temperature: float = 1.0,
    seed: int = 0,
    output: Path = Path("samples.npz"),
    as_json: Json = False,
) -> None:
    """Draw new samples from a trained density, as an .npz file with x, and a picture beside it.

    Args:
        run: Folder of the run.
        number: How many.
        temperature: Times the base distribution's standard deviation; below 1 the samples are more typical.
        seed: Seed of the samples.
        output: The file to write.
    """
    import numpy as np

    from charax.plotting import draw_samples
    from charax.train import sample

    drawn = sample(run, number, seed=seed, temperature=temperature)
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("wb") as file:
        np.savez(file, x=drawn.values)
    shown = draw_samples(drawn.values, drawn.white, output.with_suffix(".png"))
    answer = {"output": str(output), "picture": str(shown), "samples": number}
    table = Table("samples", "file", "picture")
    table.add_row(str(number), str(output), str(shown))
    tell(answer, table, as_json=as_json)
