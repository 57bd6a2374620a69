"""`python -m tests.fuzz.refuse_hostile_files FOLDER`: read all hostile files, and print what that took as JSON."""

import json
import os
import sys
import time
from pathlib import Path

from charax.data import DATASETS, DataError, load_dataset
from tests.fuzz.checks import megabytes
from tests.fuzz.hostile import FILES, SOURCES


def read(name: str) -> str:
    try:
        load_dataset(name)
    except DataError as error:
        return str(error)
    return ""


def main(folder: Path) -> None:
    found = {}
    jobs = {name: (str(folder / name), lambda name=name: FILES[name][0](folder / name)) for name in FILES}
    for key, (source, file, make, _) in SOURCES.items():
        home = folder / key / source
        home.mkdir(parents=True)
        for each in DATASETS[source].files:
            (home / each).touch()
        jobs[f"{source} {key}"] = (source, lambda make=make, path=home / file: make(path))
    for name, (data, make) in jobs.items():
        begin = time.process_time()
        make()
        os.environ["CHARAX_DATA"] = str(folder / name.split()[-1]) if " " in name else str(folder)
        made = time.process_time() - begin
        started, begin = time.monotonic(), time.process_time()
        reason = read(data)
        found[name] = {
            "reason": reason,
            "seconds": round(time.monotonic() - started, 2),
            "made": round(made, 2),
            "cpu_seconds": round(time.process_time() - begin, 2),
            "megabytes": round(megabytes("VmHWM")),
        }
        print(name, found[name], file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
