"""The files of the results, and the page that is made of them."""

import json
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks.processes.equality import KILLED


def read(output: Path | None, part: str) -> Any:
    """What a part has written; None if it has not begun."""
    path = output / f"{part}.json" if output is not None else None
    return json.loads(path.read_text()) if path is not None and path.is_file() else None


def write(output: Path | None, part: str, content: Any) -> None:
    """Write a part, and the page of all parts."""
    if output is None:
        return
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{part}.json").write_text(json.dumps(content, indent=1) + "\n")
    write_page(output)


def write_page(output: Path) -> None:
    """Write README.md from the parts that are there."""
    lines = ["# One training over many processes", "", "Written by `python -m benchmarks.processes`.", ""]
    if equality := read(output, "equality"):
        lines += ["## Equality", "", "Largest difference of all metrics of all epochs and of the test split.", ""]
        lines += ["| task | processes | from one process with as many devices | from one device |", "|---|---|---|---|"]
        lines += [
            f"| {row['task']} | {row['processes']} | {row['from_devices']:.1e} | {row['from_one']:.1e} |"
            for row in equality
        ]
        lines += ["", "Raw numbers: [equality.json](equality.json).", ""]
    if resumed := read(output, "resume"):
        lines += ["## Resumed with another number of processes", ""]
        lines += ["| started with | resumed with | difference from an uninterrupted run of 2 |", "|---|---|---|"]
        lines += [f"| {row['started']} | {row['resumed']} | {row['difference']:.1e} |" for row in resumed]
        lines += ["", "Raw numbers: [resume.json](resume.json).", ""]
    if kills := read(output, "kills"):
        same = sum(kill["same"] for kill in kills)
        before = sum(kill["last_checkpoint"] is None for kill in kills)
        lines += ["## Killed by SIGKILL", ""]
        lines += [f"`charax launch -n 2 --restarts 1 -- train {KILLED}`: a random process killed at a random moment."]
        lines += [f"{same} of {len(kills)} runs ended with exactly the metrics of a run that nothing interrupted;"]
        lines += [
            f"{before} of them were killed before their first checkpoint. Raw numbers: [kills.json](kills.json).",
            "",
        ]
    if memory := read(output, "memory"):
        rows = memory[0]["data_bytes"] / 1e6
        lines += [
            "## Memory",
            "",
            f"`charax train {memory[0]['flags']}` on {rows:,.0f} MB of rows: what each process",
            "",
        ]
        lines[-2] += " holds at the end of training, and at most, more than with a thirteenth of the rows."
        lines += ["| processes | process | holds | at most |", "|---|---|---|---|"]
        lines += [
            f"| {row['processes']} | {rank} | {(many['held'] - few['held']) / 1e6:,.0f} MB "
            f"| {(many['peak'] - few['peak']) / 1e6:,.0f} MB |"
            for row in memory
            for rank, (many, few) in enumerate(zip(row["many"], row["few"], strict=True))
        ]
        lines += ["", "Raw numbers: [memory.json](memory.json).", ""]
    if scaling := read(output, "scaling"):
        lines += [
            "## From one process to two",
            "",
            "A step of training with its reading, on two cores; the best of three means of 20 steps. The gains are",
            "those of two processes with a core each, as `charax launch -n 2` starts them.",
            "",
        ]
        kinds = list(scaling[0]["measured"])
        milliseconds = lambda seconds: f"{1e3 * seconds:.1f} ms"
        hundredths = lambda seconds: f"{1e3 * seconds:.2f} ms"
        lines += [
            f"| run | {' | '.join(kinds)} | gain over one core | over two |",
            f"|---{'|---' * len(kinds)}|---|---|",
        ]
        best = [{kind: min(row["measured"][kind], key=itemgetter("seconds")) for kind in kinds} for row in scaling]
        lines += [
            f"| {row['run']} | {' | '.join(milliseconds(found[kind]['seconds']) for kind in kinds)} "
            f"| {row['speedup_over_one_core']:.2f}x | {row['speedup_over_one_process']:.2f}x |"
            for row, found in zip(scaling, best, strict=True)
        ]
        lines += ["", "The devices exchange one array per step: the gradient, the loss and its metrics. All-reduces of"]
        lines += ["the same arrays and nothing else, in the same processes on the same cores:", ""]
        lines += ["| run | arrays | numbers | a core each | two cores |", "|---|---|---|---|---|"]
        lines += [
            f"| {row['run']} | {found[kinds[-1]]['arrays']} | {found[kinds[-1]]['numbers']:,} "
            f"| {' | '.join(hundredths(found[kind]['exchange_seconds']) for kind in kinds[-2:])} |"
            for row, found in zip(scaling, best, strict=True)
        ]
        lines += ["", "Raw numbers: [scaling.json](scaling.json).", ""]
    if arithmetic := read(output, "arithmetic"):
        step = arithmetic["step"]
        lines += ["## Many devices, on paper", ""]
        lines += [f"Images of {step['size']:g}x{step['size']:g}, {step['parameters']:,} parameters (preset small),"]
        lines += [f"batch 1,024: {1e3 * step['seconds_per_image']:.1f} CPU milliseconds per image were measured on one"]
        lines += ["core, and all-reduces between two processes; 8 and 64 devices are computed from them (ring).", ""]
        lines += [
            "| devices | images each | memory each | step | all-reduce | efficiency |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {row['devices']} | {row['images_per_device']} | {row['bytes_per_device'] / 2**20:,.0f} MiB "
            f"| {row['compute_seconds']:.2f} s | {row['all_reduce_seconds']:.3f} s | {row['efficiency']:.1%} |"
            for row in arithmetic["rows"]
        ]
        lines += ["", "Raw numbers: [arithmetic.json](arithmetic.json).", ""]
    (output / "README.md").write_text("\n".join(lines).rstrip() + "\n")
