"""One HTML file from runs: no network, no server, no other file."""

import os
from collections.abc import Sequence
from pathlib import Path

from charax.plotting import Section
from charax.report._curves import learning_curves
from charax.report._html import block, content, write_page
from charax.report._intervals import metric_intervals
from charax.report._tables import compare_runs, describe_training
from charax.train import Run, computing_in

_MAIN = ("loss", "accuracy", "deviation_percent")


def write_report(runs: Sequence[Run], path: Path | str) -> Path:
    """Write a page about runs: what was trained, metrics, learning curves, and whatever their tasks have to show.

    Args:
        runs: Finished runs, also of different tasks. Several are compared side by side.
        path: The HTML file.

    Returns:
        The file.

    Raises:
        ValueError: If there are no runs.

    ```python
    import tempfile
    from pathlib import Path

    import charax
    from charax.report import write_report

    config = charax.ClassificationConfig(preset="dense", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        run = charax.train.train(config, f"{folder}/run")
        page = write_report([run], f"{folder}/report.html").read_text()
    assert "Learned characteristics" in page
    ```
    """
    if not runs:
        raise ValueError("a report needs at least one run")
    path = Path(path)
    names = short_names([run.folder for run in runs])
    title = names[0] if len(runs) == 1 else f"{len(runs)} runs"
    write_page(path, title, _render(runs, names))
    return path


def short_names(folders: Sequence[Path]) -> list[str]:
    """The names of folders without what all of them have in common, and with what it takes to tell them apart."""
    names = [folder.absolute().name for folder in folders]
    if len(set(names)) == len(names):
        return names
    common = os.path.commonpath([folder.absolute().parent for folder in folders])
    return [os.path.relpath(folder.absolute(), common) for folder in folders]


def _render(runs: Sequence[Run], names: Sequence[str]) -> str:
    intervals = [metric_intervals(run) for run in runs]
    solid = "Solid: validation. Dotted: training."
    curves = [
        Section("Learning curves", f"{solid}{matching_note(runs)}", learning_curves(runs, names, _MAIN)),
        _evaluations(runs, names, solid),
    ]
    parts = [
        block("Metrics", [(None, _metrics_text(len(runs)) + compare_runs(runs, names, intervals))]),
        *(
            block(each.title, [(None, content(each))])
            for each in curves
            if each.figure is not None or each.text != solid
        ),
    ]
    by_title: dict[str, list[tuple[str | None, str]]] = {}
    for run, name in zip(runs, names, strict=True):
        task, model = run.trained
        with computing_in(model):
            sections = task.report(model, run.splits, data=run.config.data)
        for section in sections:
            by_title.setdefault(section.title, []).append((name if len(runs) > 1 else None, content(section)))
    parts += [block(title, cells) for title, cells in by_title.items()]
    trained = [(name if len(runs) > 1 else None, describe_training(run)) for run, name in zip(runs, names, strict=True)]
    return "\n".join([*parts, block("What was trained", trained)])


def matching_note(runs: Sequence[Run]) -> str:
    """A sentence about the training curves of flow matching, whose loss is another one than that of validation."""
    if not any(str(getattr(run.config, "objective", "")).startswith("matching") for run in runs):
        return ""
    return " In training, flow matching has a loss of its own: the error of the velocity, not the likelihood."


def _evaluations(runs: Sequence[Run], names: Sequence[str], solid: str) -> Section:
    """Function evaluations over training: a figure if they changed, else a sentence."""
    title = "Function evaluations"
    counts = [[row.get("validation_nfe") for row in run.epochs] for run in runs]
    if any(len(set(each)) > 1 for each in counts):
        text = "Evaluations of the field per solve, which become more as it becomes harder to integrate."
        return Section(title, f"{text} {solid}", learning_curves(runs, names, ("nfe",)))
    known = [
        f"{each[0]:g}" + (f" ({name})" if len(runs) > 1 else "")
        for each, name in zip(counts, names, strict=True)
        if each[0]
    ]
    if not known:
        return Section(title, "They are not counted: the solves are inside a search for foot points.", None)
    return Section(title, f"The same per solve in all epochs, because the steps are fixed: {', '.join(known)}.", None)


def _metrics_text(count: int) -> str:
    text = "On the test split, with 95% bootstrap confidence intervals over its samples below."
    return f"<p>{text}{' Click on a column to sort by it.' if count > 1 else ''}</p>"
