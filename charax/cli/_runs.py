"""`charax runs`, `charax compare` and `charax report`: what there is to see of runs."""

from pathlib import Path
from typing import Any

from charax import report as reports
from charax import train
from charax.cli._print import Json, Positional, format_number, print_answer


def list_runs(folder: Positional[Path] = Path("runs"), *, as_json: Json = False) -> None:
    """List the runs in a folder: task, data, method, test metric, NFE, parameters, time, finished or resumable.

    Args:
        folder: The folder; the folders in it are searched, too.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder: give the folder of some runs, such as runs")
    runs = train.list_runs(folder)
    shown = lambda value: "-" if value is None else format_number(value)
    cells = [
        [
            str(Path(run.run).relative_to(folder)),
            run.task,
            Path(run.data).name,
            run.method,
            "-" if run.metric is None else f"{run.metric.replace('_', ' ')} {shown(run.value)}",
            *map(shown, (run.nfe, run.parameters)),
            "-" if run.seconds is None else f"{run.seconds:.1f}",
            run.status,
        ]
        for run in runs
    ]
    columns = ["run", "task", "data", "method", "test metric", "NFE", "parameters", "seconds", "status"]
    note = "" if runs else f"There are no runs in {folder}."
    title = f"Runs in {folder}"
    answer = {"rows": [run._asdict() for run in runs]}
    print_answer(
        answer,
        columns,
        cells,
        title=title,
        note=note,
        text_columns=5,
        optional=("task", "data", "method"),
        as_json=as_json,
    )


def compare(runs: Positional[tuple[Path, ...]], *, as_json: Json = False) -> None:
    """Compare finished runs: the settings in which they differ, and their metrics.

    Args:
        runs: Folders of two or more runs.
    """
    from charax.report._page import short_names

    if len(runs) < 2:
        raise ValueError(f"there must be at least two runs to compare, got {len(runs)}")
    loaded = [train.load_run(run) for run in runs]
    settings = train.compare_configs([run.config for run in loaded])
    rows = [{**run.summary(), **different} for run, different in zip(loaded, settings, strict=True)]
    metrics = list(dict.fromkeys(name for run in loaded for name in run.summary() if name != "run"))
    spell = lambda value: format_number(value) if isinstance(value, int | float) else _spell(value)
    cells = [[name, *(_spell(each[name]) for each in settings)] for name in settings[0]]
    cells += [[name.replace("_", " "), *(spell(row.get(name)) for row in rows)] for name in metrics]
    columns = ["setting or metric", *short_names(runs)]
    print_answer(
        {"rows": rows}, columns, cells, title="Settings that differ, and metrics", text_columns=1, as_json=as_json
    )


def report(runs: Positional[tuple[Path, ...]], *, output: Path = Path("report.html"), as_json: Json = False) -> None:
    """Write a page about one or more runs, with figures that move: one HTML file, which needs no network.

    Args:
        runs: Folders of finished runs. Several are compared side by side.
        output: The HTML file to write.
    """
    if not runs:
        raise ValueError("give the folder of at least one run, such as runs/classify-digits-c-node")
    path = reports.write_report([train.load_run(run) for run in runs], output)
    answer: dict[str, Any] = {"output": str(path), "runs": [str(run) for run in runs]}
    print_answer(answer, ["run"], [[str(run)] for run in runs], note=f"Report: {path}", as_json=as_json)


def _spell(value: Any) -> str:
    return "-" if value is None else str(value)
