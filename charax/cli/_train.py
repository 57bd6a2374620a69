"""`charax train …`, made from the registered tasks, and what can be done with a run."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from charax import train
from charax.cli._metrics import explain_metrics
from charax.cli._print import Json, Positional, format_number, print_answer, print_metrics, print_rows
from charax.train import AbstractConfig, AbstractProgress, ProcessesConfig, SweepConfig
from charax.train._launch import watch

if TYPE_CHECKING:
    from charax.train import Run

Together = Annotated[ProcessesConfig, tyro.conf.arg(name="")]
_ALONE = ProcessesConfig()
_SHOWN = 8
"""Rows of predictions that are printed; the file has all of them."""
_HELP = {
    "classify": "Train a classifier on embedded, downloaded or own data.",
    "regress": "Train a regressor, with prediction intervals, on a table or arrays of numbers.",
    "density": "Train a continuous normalizing flow on points, tables or images.",
    "pde": "Learn a PDE from samples of its solution: a built-in problem, or your own file.",
    "series": "Learn the class, or a number, of whole time series: irregular times, missing values, different lengths.",
    "forecast": "Learn to forecast time series: the paper's, or your own file of series, times and values.",
}
_ARGUMENTS = """Args:
    config: Data, model, solver, optimizer and training.
    name: Name of the run. By default made from the task, the data and the method.
    output: Folder in which the folder of the run is created.
    seeds: Train with this many seeds, the first of them --seed, into NAME-seed0, NAME-seed1 and so on, and average.
        Called again, it resumes.
    tensorboard: Also write the metrics as event files for TensorBoard, into the folder tensorboard of the run.
    together: One training over several processes.
"""


def train_command(config_type: type[AbstractConfig]) -> Callable[..., None]:
    """The command that trains one task: its flags are the fields of the config."""

    def command(
        config: config_type,  # pyright: ignore[reportInvalidTypeForm]
        sweep: SweepConfig,
        *,
        name: str | None = None,
        output: Path = Path("runs"),
        seeds: int | None = None,
        tensorboard: bool = False,
        together: Together = _ALONE,
        as_json: Json = False,
    ) -> None:
        chosen = None if name is None else check_name(name)
        if seeds is not None:
            if together != _ALONE:
                raise ValueError("several seeds and one training over several processes exclude each other")
            train_seeds_and_print(config, output, chosen or config.label, seeds, sweep, tensorboard, as_json)
            return
        if sweep != SweepConfig():
            raise ValueError("--jobs and what belongs to it are for several runs: add --seeds, or leave them out")
        with train.join(together):
            folder = output / (chosen or train.on_first(lambda: train.name_run(output, config.label)))
            start = lambda progress: train.train(config, folder, progress=progress)
            train_and_print(start, folder, tensorboard, as_json)

    first = _HELP.get(config_type.name) or (config_type.__doc__ or "").strip().splitlines()[0]
    command.__doc__ = "\n\n".join(filter(None, (first, explain_metrics(config_type.name), _ARGUMENTS)))
    return command


def train_seeds_and_print(
    config: AbstractConfig, output: Path, label: str, seeds: int, sweep: SweepConfig, tensorboard: bool, as_json: bool
) -> None:
    """Train with several seeds, and print their metrics, mean and standard deviation."""
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}")
    if tensorboard:
        raise ValueError("--tensorboard is for one run: leave it out, or leave --seeds out")
    first = config.loop.seed
    jobs = train.seed_jobs(config, output, range(first, first + seeds), label=label)
    runs = train.Sweep(sweep, progress=train.make_progress()).run(jobs)
    rows = [{"seed": run.config.loop.seed, **run.summary()} for run in runs]
    numbers = [key for key, value in rows[0].items() if key != "seed" and isinstance(value, int | float)]
    known = [key for key in numbers if all(row.get(key) is not None for row in rows)]
    averages = {key: train.mean_and_sd([row[key] for row in rows]) for key in known}
    answer = {"rows": rows, "mean": {k: mean for k, (mean, _) in averages.items()}}
    answer["sd"] = {k: sd for k, (_, sd) in averages.items()}
    cells = [[str(row["seed"]), *(format_number(row.get(key)) for key in numbers)] for row in rows]
    cells += [[name, *(format_number(answer[name].get(key)) for key in numbers)] for name in ("mean", "sd")]
    columns = ["seed", *(key.replace("_", " ") for key in numbers)]
    note = f"Runs: {', '.join(str(run.folder) for run in runs)}"
    print_answer(answer, columns, cells, title=f"{label}, {seeds} seeds", note=note, text_columns=1, as_json=as_json)


def check_name(name: str) -> str:
    """Refuse a name that would lead out of the output folder."""
    if name in ("", ".", "..") or Path(name).name != name:
        raise ValueError(f"--name must be a plain name without slashes, got {name!r}; choose the place with --output")
    return name


def train_and_print(start: Callable[[AbstractProgress], "Run"], folder: Path, tensorboard: bool, as_json: bool) -> None:
    """Train with progress on standard error and perhaps event files, and print the summary."""
    progress = watch(train.make_progress(), folder)
    if not train.is_first():
        start(progress)
        return
    if not tensorboard:
        print_run(start(progress), progress, as_json=as_json)
        return
    events = train.TensorBoard(progress, folder)
    run = start(events)
    events.finish(run.history)
    print_run(run, progress, as_json=as_json)


def print_run(run: "Run", progress: AbstractProgress, *, as_json: bool) -> None:
    """Plot a run and print its summary."""
    if run.advice:
        progress.say(run.advice)
    answer = run.summary()
    figures = ", ".join(str(path) for path in run.plot())
    metrics = {name: value for name, value in answer.items() if value is None or isinstance(value, int | float)}
    metrics.pop("equation", None)
    note = f"Figures: {figures}"
    if "equation" in answer:
        unexplained = "no sparse formula is as good as the networks, which are the answer"
        note = f"Equation: {answer['equation'] or unexplained}\n{note}"
    print_metrics(answer, metrics, title=f"Run {run.folder}", note=note, as_json=as_json)


def resume(
    run: Positional[Path],
    *,
    epochs: int | None = None,
    tensorboard: bool = False,
    together: Together = _ALONE,
    as_json: Json = False,
) -> None:
    """Resume an interrupted run, or train a finished one longer.

    Args:
        run: Folder of the run.
        epochs: New maximum number of epochs of a finished run.
        tensorboard: Also write the metrics, those from before included, as event files for TensorBoard.
        together: One training over several processes; also of a run that was started with another number of them.
    """
    with train.join(together):
        if epochs is None and train.is_finished(run):
            train.make_progress().say(f"{run} is finished: there is nothing left to train; --epochs trains it longer")
        start = lambda progress: train.resume(run, epochs=epochs, progress=progress)
        train_and_print(start, run, tensorboard, as_json)


def evaluate(
    run: Positional[Path],
    *,
    split: Literal["train", "validation", "test"] | None = None,
    data: Path | None = None,
    as_json: Json = False,
) -> None:
    """Evaluate a trained model on a split of its data, or on new data.

    The help of its training explains the metrics: `charax train classify --help`.

    Args:
        run: Folder of the run.
        split: The split; test by default.
        data: A file or folder of new samples with the right answers, in the format of the training data, instead of a
            split. For classifiers, regressors, models of series, and forecasts with --history.
    """
    if data is not None and split is not None:
        raise ValueError("--data and --split exclude each other: new data have no splits")
    report = train.evaluate(run, split or "test", data=data)
    where = {"split": split or "test"} if data is None else {"data": str(data)}
    tables = {name: rows for name, rows in report.items() if isinstance(rows, list)}
    metrics = {name: value for name, value in report.items() if name not in tables}
    on = f"the {split or 'test'} split" if data is None else str(data)
    print_metrics({"run": str(run), **where, **report}, metrics, title=f"{run} on {on}", note="", as_json=as_json)
    if not as_json:
        for rows in tables.values():
            print_rows(rows, note="In brackets: 95% confidence intervals.")


Class = Annotated[str | None, tyro.conf.arg(name="class")]


def predict(
    run: Positional[Path],
    inputs: Positional[Path],
    *,
    output: Path = Path("predictions.csv"),
    force: bool = False,
    keep: tuple[str, ...] = (),
    keep_all: bool = False,
    class_name: Class = None,
    strict: bool = False,
    as_json: Json = False,
) -> None:
    """Predict for new inputs and write a CSV file: classes and probabilities, values, or log-densities.

    A row without an answer is left empty, and a column `status` says why.

    Args:
        run: Folder of the run.
        inputs: An .npz, a table (.csv, .tsv, .txt, .parquet, .xlsx), an image, or a folder, .zip or .tar of
            images.
        output: The file to write.
        force: Overwrite the file if it exists.
        keep: Columns of the table of inputs to carry over, before the predictions.
        keep_all: Carry all columns of the table of inputs over.
        class_name: The class to condition on, for a density that was trained with --conditional. Without it there
            is a column per class.
        strict: Fail if one of the rows has no answer.
    """
    if output.exists() and not force:
        raise ValueError(f"{output} exists: give another --output, or --force to overwrite it")
    chosen = "all" if keep_all else keep
    predictions = train.predict(run, inputs, strict=strict, class_name=class_name, keep=chosen)
    predictions.write(output)
    count, failed = len(predictions.rows), predictions.failed
    notes = [f"{failed} of {count} rows have no answer: see the column status of {output}"] if failed else []
    columns = ["Columns:", *(f"  {meaning}" for meaning in predictions.meanings)] if predictions.meanings else []
    note = "\n".join([*notes, *columns])
    answer: dict[str, Any] = {"output": str(output), "predictions": count, "failed": failed}
    shown = predictions.shown
    print_answer(
        answer,
        predictions.columns[:shown],
        [row[:shown] for row in predictions.rows[:_SHOWN]],
        title=f"Predictions, all of them in {output}",
        note=note,
        text_columns=shown,
        as_json=as_json,
    )


def sample(
    run: Positional[Path],
    *,
    number: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 64,
    class_name: Class = None,
    context: Path | None = None,
    temperature: float = 1.0,
    guidance: float = 0.0,
    seed: int = 0,
    output: Path = Path("samples.npz"),
    as_json: Json = False,
) -> None:
    """Draw samples from a trained density: an .npz file with x (and y, if it is conditional), and a figure.

    Args:
        run: Folder of the run.
        number: Number of samples.
        class_name: The class to sample from, for a density that was trained with --conditional; all classes in turn
            if left out.
        context: A table with the columns that the density was conditioned on with --context. Its rows are taken in
            turn.
        temperature: Multiplies the standard deviation of the base distribution; below 1 samples are more typical.
        guidance: Above 0, samples are more typical of their class (classifier-free guidance), for a density that was
            trained with --conditional and --hidden-classes.
        seed: Seed of the samples.
        output: The .npz file to write; the figure is next to it.
    """
    import numpy as np

    from charax.tasks.density._plots import plot_samples

    if output.suffix != ".npz":
        raise ValueError(f"samples are not written to {output}: give --output the name of an .npz file")
    samples = train.sample(
        run,
        number,
        seed=seed,
        temperature=temperature,
        class_name=class_name,
        context=context,
        guidance=guidance,
    )
    output.parent.mkdir(parents=True, exist_ok=True)
    labels = {} if samples.classes is None else {"y": np.asarray(samples.classes)}
    with output.open("wb") as file:
        np.savez(file, allow_pickle=False, x=samples.values, **labels)
    figure = plot_samples(samples.values, samples.max_value, output.with_suffix(".png"))
    answer = {"output": str(output), "picture": str(figure), "samples": number}
    # Paths are not cells, which are cut on a narrow terminal.
    note = f"Figure: {figure}"
    print_answer(answer, ["samples"], [[str(number)]], title=f"Samples in {output}", note=note, as_json=as_json)


def export(
    run: Positional[Path],
    *,
    output: Path | None = None,
    format: train.ProgramFormat = "stablehlo",  # noqa: A002  # the name of the flag
    platform: tuple[Literal["cpu", "cuda", "tpu"], ...] = ("cpu", "cuda", "tpu"),
    as_json: Json = False,
) -> None:
    """Write a trained model with its solver as programs that run without charax, for any batch size.

    Read one with `jax.export.deserialize(Path(file).read_bytes()).call(inputs)`, or with onnxruntime; programs.json
    describes the inputs.

    Args:
        run: Folder of the run.
        output: Folder of the files. By default `programs` in the folder of the run.
        format: stablehlo runs with JAX alone; onnx with onnxruntime, without JAX, for classifiers with fixed steps.
        platform: Where StableHLO programs are to run.
    """
    if format == "onnx" and platform != train.PLATFORMS:
        raise ValueError("a program in ONNX runs where onnxruntime does: leave --platform out")
    folder = run / "programs" if output is None else output
    paths = train.export_programs(train.load_model(run), folder, platforms=platform, format=format)
    answer = {"run": str(run), "output": str(folder), "programs": [path.stem for path in paths[:-1]]}
    rows = [[path.name, f"{path.stat().st_size:,}"] for path in paths]
    print_answer(answer, ["file", "bytes"], rows, title=f"Programs in {folder}", note="", as_json=as_json)
