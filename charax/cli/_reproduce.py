"""`charax reproduce …`, made from the paper's experiments, and `charax select`."""

from collections.abc import Callable
from pathlib import Path

from charax import select, train
from charax.cli._print import Json, print_answer, print_report
from charax.paper import AbstractExperiment
from charax.paper.ablation import report_selection
from charax.tasks import ClassificationConfig
from charax.train import Sweep, SweepConfig


def reproduce_command(experiment_type: type[AbstractExperiment]) -> Callable[..., None]:
    """The command that reproduces one table or figure: its flags are the fields of the experiment."""

    def command(
        experiment: experiment_type,  # pyright: ignore[reportInvalidTypeForm]
        sweep: SweepConfig,
        *,
        output: Path | None = None,
        redraw: bool = False,
        as_json: Json = False,
    ) -> None:
        folder = _check_folder(output or Path("runs") / experiment.label)
        if redraw:
            figures = [str(path) for path in experiment.redraw(folder)]
            print_answer({"figures": figures}, ["figure"], [[path] for path in figures], as_json=as_json)
            return
        report = experiment.run(folder, Sweep(sweep, progress=train.make_progress()))
        print_report(report, report.write(folder), as_json=as_json)

    command.__doc__ = f"""{(experiment_type.__doc__ or "").strip()}

    Args:
        output: Folder of the runs, the table and the figures. By default runs/{experiment_type.name}, with the budget.
        redraw: Only draw the figures again, from the JSON file that an earlier run left in the folder.
    """
    return command


def select_command(
    config: ClassificationConfig,
    sweep: SweepConfig,
    *,
    k: tuple[int, ...] = (1, 2, 4, 8),
    seeds: int = 3,
    output: Path | None = None,
    as_json: Json = False,
) -> None:
    """Choose the characteristic dimension k: train each over seeds and compare validation accuracy, AIC and BIC.

    An interrupted selection resumes when it is called again.

    Args:
        k: Values of k to try.
        seeds: Runs per k.
        output: Folder of the runs, the table and the figure. By default runs/select-DATA-METHOD.
    """
    folder = _check_folder(output or Path("runs") / f"select-{config.data_label}-{config.method}")
    runs = Sweep(sweep, progress=train.make_progress())
    selection = select.select_dimension(config, k, seeds=seeds, folder=folder, sweep=runs)
    report = report_selection([selection], f"Choosing k for {config.data}")
    print_report(report, report.write(folder), as_json=as_json)


def _check_folder(folder: Path) -> Path:
    """Refuse a file in place of the folder before anything is computed."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: give another --output")
    return folder
