"""The tables of a report, as HTML: what was trained, what differs, metrics with their intervals."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from charax.nn import count_parameters
from charax.report._intervals import Interval
from charax.train import Run, compare_configs, count_samples, flatten_config
from charax.train._export import CONFIG
from charax.train._json import read_json


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, sortable: bool = False) -> str:
    """A table; the cells are HTML already."""
    attribute = ' class="sortable"' if sortable else ""
    button = (lambda title: f"<button type='button'>{title}</button>") if sortable else (lambda title: title)
    top = "".join(f"<th scope='col'>{button(escape(title))}</th>" for title in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    head_row = f"<thead><tr>{top}</tr></thead>" if any(head) else ""
    return f"<div class='scroll'><table{attribute}>{head_row}<tbody>{body}</tbody></table></div>"


def describe_training(run: Run) -> str:
    """Sizes, versions, data and config of one run."""
    stored = read_json(run.folder / CONFIG, missing="")
    sizes = {split: count_samples(getattr(run.splits, split)) for split in ("train", "validation", "test")}
    versions = {"charax": stored.get("charax"), **(stored.get("versions") or {})}
    facts = {
        "folder": str(run.folder),
        "task": run.config.name,
        "parameters": f"{count_parameters(run.trained.model):,}",
        "samples per epoch": ", ".join(f"{count:,} {split}" for split, count in sizes.items()),
        "digest of the data": stored.get("data_digest", "not stored"),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "best epoch": f"{run.history[-1]['best_epoch']} of {len(run.epochs)}",
        "training time": f"{run.history[-1]['seconds']:.1f} s",
    }
    settings = {name: spell(value) for name, value in flatten_config(run.config).items()}
    shown = [[escape(name), escape(str(value))] for name, value in facts.items()]
    config = [[f"<code>{escape(name)}</code>", escape(value)] for name, value in settings.items()]
    return (
        table(["", ""], shown)
        + f"<details><summary>All {len(config)} settings</summary>{table(['setting', 'value'], config)}</details>"
    )


def compare_runs(runs: Sequence[Run], names: Sequence[str], intervals: Sequence[Mapping[str, Interval]]) -> str:
    """One row per run: metrics with intervals, evaluations, parameters, time, and the settings that differ."""
    settings = compare_configs([run.config for run in runs]) if len(runs) > 1 else [{} for _ in runs]
    metrics = list(dict.fromkeys(name for found in intervals for name in found))
    summaries = [run.summary() for run in runs]
    texts = list(dict.fromkeys(name for each in summaries for name, value in each.items() if isinstance(value, str)))
    texts = [name for name in texts if name not in ("run", *settings[0])]
    named = [name.replace("_", " ") for name in (*metrics, *texts)]
    head = ["run", *named, "NFE", "parameters", "seconds", *settings[0]]
    rows = []
    for name, summary, different, found in zip(names, summaries, settings, intervals, strict=True):
        rows.append(
            [
                escape(name),
                *(spell_interval(found.get(metric)) for metric in metrics),
                *(f"<span class='text'>{escape(str(summary.get(text, '-')))}</span>" for text in texts),
                *(number(summary.get(key)) for key in ("nfe", "parameters", "seconds")),
                *(escape(spell(value)) for value in different.values()),
            ]
        )
    return table(head, rows, sortable=len(runs) > 1)


def spell_interval(interval: Interval | None) -> str:
    """A metric with its interval below it."""
    if interval is None:
        return "-"
    value, lower, upper = interval
    if lower is None or upper is None:
        return number(value)
    return f"{number(value)}<small>{digits(lower)} to {digits(upper)}</small>"


def number(value: float | None) -> str:
    """A number that the table can sort by."""
    return "-" if value is None else f"<span data-value='{value!r}'>{digits(value)}</span>"


def digits(value: float) -> str:
    """A number with fitting digits."""
    if isinstance(value, int) or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.4f}" if abs(value) >= 0.01 else np.format_float_scientific(value, precision=2)


def spell(value: Any) -> str:
    """A setting as a text."""
    if value is None:
        return "default"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
