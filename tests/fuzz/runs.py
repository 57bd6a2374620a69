"""Odd files of a run, with right digests."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from charax.train import TASKS, from_json, load_config, load_run, save_config, to_json
from charax.train._json import seal
from tests.fuzz import containers
from tests.fuzz.targets import Target

MODEL: list[Path] = []
"""The folder of a finished run, which the tests make."""
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.sampled_from([0, -1, 1, 10**6, 2**31, 2**40, 2**63, 0.5, -0.0, 1e308, float("inf"), float("nan")])
    | st.sampled_from(["", "line", "classify", "digits", "nowhere", "\0", "x" * 3000, "node", "small", "text", "date"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


def places_of(stored: Any, path: tuple = ()) -> list[tuple]:
    pairs = stored.items() if isinstance(stored, dict) else enumerate(stored) if isinstance(stored, list) else ()
    return [path, *(place for key, value in pairs for place in places_of(value, (*path, key)))]


def put(stored: Any, path: tuple, value: Any) -> Any:
    if not path:
        return value
    key, *rest = path
    if isinstance(stored, dict):
        return {**stored, key: put(stored[key], tuple(rest), value)}
    return [put(part, tuple(rest), value) if i == key else part for i, part in enumerate(stored)]


def change_json(path: Path, edits: list[tuple[float, Any]], sealed: bool = True) -> None:
    """Change values at any place, with a right digest."""
    stored = json.loads(path.read_text())
    stored.pop("blake2b", None)
    for place, value in edits:
        places = places_of(stored)[1:] or [()]
        stored = put(stored, places[int(place * len(places))], value)
    content = seal(stored) if sealed and isinstance(stored, dict) else stored
    path.write_text(json.dumps(content))


CHANGES = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), JSON), min_size=1, max_size=2)
TENSORS = st.builds(
    containers.safetensors_of,
    st.dictionaries(
        st.sampled_from(["weight", "bias", "__metadata__", "x"]),
        st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(["F32", "F64", "I8", "BF16", "F8_E4M3", "odd"]),
                "shape": st.sampled_from([[1, 2], [1], [0], [2**40], [-1], []]),
                "data_offsets": st.sampled_from([[0, 8], [8, 12], [0, 2**40], [8, 0], [0, 0]]),
            }
        )
        | JSON,
        max_size=3,
    ),
    st.sampled_from([b"", bytes(8), bytes(12), b"\xff" * 12]),
)


def a_run(change: Callable[[Path, Any], None], drawn: st.SearchStrategy[Any], cases: int) -> Target:
    """A run of which one file is changed."""

    def write(folder: Path, value: Any) -> tuple[Callable[[], object], str]:
        run = shutil.copytree(MODEL[0], folder / "run")
        change(run, value)
        return lambda: load_run(run).summary(), str(folder)

    return Target(drawn, write, cases)


def change_weights(run: Path, content: bytes) -> None:
    (run / "model.safetensors").write_bytes(content)
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    stored = json.loads((run / "model.json").read_text())
    del stored["blake2b"]
    (run / "model.json").write_text(json.dumps(seal({**stored, "weights_blake2b": digest})))


def change_rows(run: Path, edits: list[tuple[float, Any]]) -> None:
    path = run / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for place, value in edits:
        places = places_of(rows)[1:]
        rows = put(rows, places[int(place * len(places))], value)
    # The last row must say that the run is finished, or nothing would be read.
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def stored_config(folder: Path, drawn: tuple[str, list[tuple[float, Any]]]) -> tuple[Callable[[], object], str]:
    save_config(folder, TASKS[drawn[0]]())  # pyright: ignore[reportCallIssue]
    change_json(folder / "config.json", drawn[1])

    def read() -> None:
        config = load_config(folder)
        assert from_json(type(config), to_json(config)) == config

    return read, "config.json"
