"""`make bench [ROWS=1,3]`: charax and its peers, one thing at a time; writes docs/results/benchmarks.json."""

import argparse
import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from benchmarks import core, figure, growth, images, machine, matching, rows, series, small_images, startup
from benchmarks.peers.process import Peer
from charax.train import tune_process

RESULTS = Path(__file__).parents[1] / "docs" / "results"
PEERS = {
    1: rows.row1,
    2: images.row2,
    3: rows.row3,
    4: images.row4,
    8: small_images.row8,
    9: small_images.row9,
    10: series.row10,
    11: matching.row11,
}
ALONE = {5: growth.row5, 6: startup.row6, 7: machine.row7}


def main() -> None:
    """Run the rows that are asked for, and keep the others as they were measured before."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows", default="0,1,2,3,4,5,6,7,8,9,10,11", help="rows to run, as in 1,3; 0 is the core by itself"
    )
    chosen = sorted({int(row) for row in parser.parse_args().rows.split(",")})
    unknown = set(chosen) - {0, *PEERS, *ALONE}
    if unknown:
        parser.error(f"there is no row {', '.join(map(str, sorted(unknown)))}")
    tune_process()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if 0 in chosen:
        _run_core()
    path = RESULTS / "benchmarks.json"
    before = json.loads(path.read_text())["rows"] if path.exists() else []
    kept = [row for row in before if row["row"] not in chosen]
    for row in _run(chosen):
        kept.append(row._asdict())
        print(_sentence(kept[-1]), flush=True)
        answer = {"machine": _machine(), "rows": sorted(kept, key=lambda row: row["row"])}
        path.write_text(json.dumps(answer, indent=2) + "\n")
    if kept:
        figure.plot(kept, RESULTS / "benchmarks.png")
    if any(row["row"] == 5 for row in kept):
        growth.plot_growth(kept, RESULTS / "growth.png")


def _run(chosen: list[int]) -> Iterator[rows.Row]:
    if any(row in PEERS for row in chosen):
        with Peer() as peer:
            for row in chosen:
                if row in PEERS:
                    yield from PEERS[row](peer)
    for row in chosen:
        if row in ALONE:
            yield from ALONE[row]()


def _run_core() -> None:
    results = {"machine": _machine(), "overhead": core.overhead(), "convolution": core.convolution()}
    (RESULTS / "core-benchmarks.json").write_text(json.dumps(results, indent=2) + "\n")
    for what in ("forward", "gradient"):
        print(f"charax / bare diffrax, {what}: {results['overhead'][what]['ratio']:.3f} (at most 1.05)")
    print(f"lax.conv / our convolution, gradient in a scan: {results['convolution']['ratio']:.1f} (at least 20)")


def _machine() -> dict[str, Any]:
    return {"cpu": platform.processor() or platform.machine(), "devices": len(jax.devices()), "jax": jax.__version__}


def _sentence(row: dict[str, Any]) -> str:
    if row["ratio"] is None:
        return f"row {row['row']}: {row['case']}: {row['ours_seconds']:.3g} s, {row['extra']}"
    target = "" if row["target"] is None else f" (at least {row['target']:g})"
    return f"row {row['row']}: {row['case']}: {row['ratio']:.2f} against {row['peer']}{target}"


if __name__ == "__main__":
    main()
