"""One training over many processes: equal metrics, kills that cost nothing, and what a second process gains.

    python -m benchmarks.processes equality --output docs/results/processes
    python -m benchmarks.processes resume --output docs/results/processes
    python -m benchmarks.processes kills --number 20 --output docs/results/processes
    python -m benchmarks.processes memory --output docs/results/processes
    python -m benchmarks.processes scaling --output docs/results/processes
    python -m benchmarks.processes arithmetic --output docs/results/processes

Each part writes one JSON file, and README.md from all of them that are there. An interrupted part continues after the
rows that it has written.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.processes.equality import TASKS, compare, resume_with_others
from benchmarks.processes.kills import kill_many
from benchmarks.processes.memory import measure_memory
from benchmarks.processes.page import read, write
from benchmarks.processes.scaling import STEPS, all_reduce, do_arithmetic, measure_step, time_steps

PARTS = ("equality", "resume", "kills", "memory", "scaling", "arithmetic", "rank", "step")


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--number", type=int, default=20, help="number of kills, or of a rank")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--run", choices=list(STEPS), default="dense")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.part == "rank":
        print(json.dumps(all_reduce(arguments.number, arguments.port)))
        return
    if arguments.part == "step":
        print(json.dumps(measure_step(arguments.run, arguments.processes, arguments.number, arguments.port)))
        return
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        if arguments.part == "arithmetic":
            write(arguments.output, "arithmetic", do_arithmetic())
            return
        rows = read(arguments.output, arguments.part) or []
        match arguments.part:
            case "equality":
                more = compare(arguments.tasks, home, len(rows))
            case "resume":
                more = resume_with_others(home, len(rows))
            case "kills":
                more = kill_many(arguments.number, home, len(rows))
            case "memory":
                more = measure_memory(home, len(rows))
            case _:
                more = time_steps(len(rows))
        for row in more:
            print(row, file=sys.stderr, flush=True)
            rows.append(row)
            write(arguments.output, arguments.part, rows)


if __name__ == "__main__":
    main()
