"""Files that ask for too much are refused in one sentence, within 5 seconds and below 1 GB."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from charax import ClassificationConfig, DensityConfig, RegressionConfig
from charax.data import LIMITS, DataError, load_dataset
from charax.train import SolverConfig
from tests.fuzz.hostile import FILES, SOURCES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict:
    """What reading each file took, in a process of its own, whose memory can be measured."""
    folder = tmp_path_factory.mktemp("hostile")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.fuzz.refuse_hostile_files", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


PHRASES = {name: words for name, (_, words) in FILES.items()} | {
    f"{source} {key}": words for key, (source, _, _, words) in SOURCES.items()
}


@pytest.mark.parametrize("name", PHRASES)
def test_a_hostile_file_is_refused_in_one_sentence_before_memory_is_taken(found, name):
    reason = found[name]["reason"]
    assert PHRASES[name] in reason
    assert "\n" not in reason
    assert len(reason) < 400
    assert found[name]["cpu_seconds"] < 5
    assert found[name]["megabytes"] < 1000


def write_npz(folder: Path) -> str:
    np.savez(folder / "own.npz", x=np.random.default_rng(0).normal(size=(40, 3)), y=np.arange(40) % 2)
    return str(folder / "own.npz")


def write_csv(folder: Path) -> str:
    rows = [f"{i},{i % 7},{'ab'[i % 2]}" for i in range(40)]
    (folder / "own.csv").write_text("\n".join(["x,y,target", *rows]))
    return str(folder / "own.csv")


def write_parquet(folder: Path) -> str:
    import pandas as pd

    pd.read_csv(write_csv(folder)).to_parquet(folder / "own.parquet")
    return str(folder / "own.parquet")


def write_excel(folder: Path) -> str:
    import pandas as pd

    pd.read_csv(write_csv(folder)).to_excel(folder / "own.xlsx", index=False)
    return str(folder / "own.xlsx")


def write_images(folder: Path) -> str:
    for name in "ab":
        (folder / name).mkdir()
        for i in range(4):
            Image.new("L", (4, 5), i).save(folder / name / f"{i}.png")
    return str(folder)


CASES = {
    "bytes of arrays": (write_npz, "bytes", 1300),
    "members of an archive": (write_npz, "members", 1),
    "bytes of a table": (write_csv, "bytes", 100),
    "lines of a text": (write_csv, "lines", 39),
    "columns of a text": (write_csv, "columns", 2),
    "cells of a text": (write_csv, "cells", 119),
    "lines of a Parquet": (write_parquet, "lines", 39),
    "columns of a Parquet": (write_parquet, "columns", 2),
    "cells of a Parquet": (write_parquet, "cells", 119),
    "bytes of a Parquet": (write_parquet, "bytes", 100),
    "pages of a Parquet": (write_parquet, "pages", 5),
    "unpacked pages of a Parquet": (write_parquet, "memory", 100),
    "lines of a sheet": (write_excel, "lines", 40),
    "columns of a sheet": (write_excel, "columns", 2),
    "cells of a sheet": (write_excel, "cells", 119),
    "members of a sheet": (write_excel, "members", 3),
    "pixels of all images": (write_images, "pixels", 159),
    "files of a folder": (write_images, "files", 3),
}


@pytest.mark.parametrize("case", CASES)
def test_every_limit_of_files_can_be_set(monkeypatch, tmp_path, case):
    write, name, limit = CASES[case]
    data = write(tmp_path)
    load_dataset(data)
    monkeypatch.setenv(LIMITS[name].variable, str(limit))
    with pytest.raises(DataError, match=LIMITS[name].variable) as refused:
        load_dataset(data)
    assert str(tmp_path) in str(refused.value)


@pytest.mark.parametrize(
    ("name", "make"),
    {
        "width": lambda size: ClassificationConfig(width=size),
        "k": lambda size: RegressionConfig(characteristic_dim=size),
        "blocks": lambda size: DensityConfig(blocks=size),
        "steps": lambda size: SolverConfig(steps=size),
        "lines": lambda size: DensityConfig(points=size),
    }.items(),
)
def test_every_limit_of_sizes_can_be_set(monkeypatch, name, make):
    assert make(20)
    with pytest.raises(ValueError, match=f"set {LIMITS[name].variable}=1000000000 if that is meant"):
        make(10**9)
    monkeypatch.setenv(LIMITS[name].variable, "19")
    with pytest.raises(ValueError, match=LIMITS[name].variable):
        make(20)


@pytest.mark.parametrize("value", ["", "many", "-1", "1e9", "9" * 30])
def test_a_limit_that_is_not_a_number_is_named(monkeypatch, value, tmp_path):
    monkeypatch.setenv("CHARAX_MAX_BYTES", value)
    with pytest.raises(ValueError, match="CHARAX_MAX_BYTES must be a whole number above 0"):
        load_dataset(write_npz(tmp_path))


def test_the_guide_lists_every_limit():
    guide = (ROOT / "docs" / "guide.md").read_text()
    missing = [each.variable for each in LIMITS.values() if f"| `{each.variable}` | {each.default:,} |" not in guide]
    assert not missing
