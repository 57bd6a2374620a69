"""Checkpoints: atomic, verified by checksums, with older ones to fall back to."""

import json
import logging
import shutil
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import PyTree

from charax.data import check_limit, check_regular
from charax.train import _processes as processes
from charax.train._arrays import fill_arrays, name_arrays
from charax.train._folder import explain_failed_write
from charax.train._json import from_json

_KEPT = 3


@dataclass(frozen=True)
class Position:
    """The position of a run. The order of the data follows from the seed and the epoch, so this is all of it."""

    epoch: int = 0
    """Finished epochs."""
    step: int = 0
    """Finished steps of the current epoch."""
    lines: int = 0
    """Lines written to `metrics.jsonl`."""
    best_score: float | None = None
    best_epoch: int = 0
    improved_epoch: int = 0
    """The epoch in which the best value was first reached."""
    seconds: float = 0.0


class Checkpoints:
    """The checkpoints of one run, the newest few of them.

    Orbax writes each to a temporary folder and renames it when it is complete, so a killed process leaves
    no incomplete one. A checksum of every array is stored with them and verified.
    """

    def __init__(self, folder: Path, say: Callable[[str], None]):
        import orbax.checkpoint as ocp  # takes seconds to import, and the first step need not wait for it

        # It would warn of what a killed process left, and in several processes of every signal.
        logging.getLogger("absl").setLevel(logging.ERROR)
        self._folder, self._say, self._ocp = folder.absolute(), say, ocp
        self._manager = self._open()

    def _open(self):
        options = self._ocp.CheckpointManagerOptions(max_to_keep=_KEPT, enable_async_checkpointing=False)
        return self._ocp.CheckpointManager(self._folder, options=options)

    def save(self, number: int, state: PyTree, position: Position) -> None:
        """Save after `number` steps, unless that has been done."""
        if number in self._manager.all_steps():
            return
        arrays = name_arrays(state)
        checksums = {name: zlib.crc32(array.tobytes()) for name, array in arrays.items()}
        self._manager.save(
            number,
            args=self._ocp.args.Composite(
                state=self._ocp.args.StandardSave(arrays),
                position=self._ocp.args.JsonSave({"position": asdict(position), "checksums": checksums}),
            ),
        )

    def restore(self, template: PyTree) -> tuple[PyTree, Position] | None:
        """The newest intact state and its position, or None. Damaged checkpoints are reported and removed."""
        for number in sorted(self._manager.all_steps(), reverse=True):
            found, reason = None, "another process could not read it"
            try:
                found = self._read(number, template)
            except Exception as error:
                reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            if processes.agree(found is not None):
                return found
            self._say(f"checkpoint {number} is damaged ({reason[:200]}); falling back to the one before")
            processes.on_first(lambda number=number: shutil.rmtree(self._folder / str(number)))
            self._manager.close()
            self._manager = self._open()
        return None

    def _read(self, number: int, template: PyTree) -> tuple[PyTree, Position]:
        for path in (self._folder / str(number)).rglob("*"):
            if not path.is_dir():
                check_regular(path)
        restored = self._manager.restore(
            number,
            args=self._ocp.args.Composite(
                state=self._ocp.args.StandardRestore(name_arrays(template)),
                position=self._ocp.args.JsonRestore(),
            ),
        )
        arrays = {name: np.asarray(array) for name, array in restored.state.items()}
        state = fill_arrays(template, arrays, f"checkpoint {number}")
        for name, checksum in restored.position["checksums"].items():
            if zlib.crc32(arrays[name].tobytes()) != checksum:
                raise ValueError(f"the checksum of {name} does not agree")
        return state, from_json(Position, restored.position["position"], f"checkpoint {number}")

    def close(self) -> None:
        self._manager.close()


def truncate_lines(path: Path, lines: int) -> None:
    """Keep the first lines of a file that may have grown after the checkpoint, or end in the middle of a line."""
    check_regular(path)
    if path.exists():
        check_limit("json", path.stat().st_size, path)
    try:
        kept = path.read_text().splitlines(keepends=True)[:lines] if path.exists() else []
    except UnicodeDecodeError:
        kept = []
    if len(kept) < lines or any(not line.endswith("\n") for line in kept):
        raise ValueError(
            f"{path} lacks lines that the checkpoint counts: it was changed; restore it, or train a new run"
        )
    with explain_failed_write(path.parent):
        write_atomically(path, "".join(kept))


def write_atomically(path: Path, text: str) -> None:
    """Write a file completely or not at all, even if the process is killed."""
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)


def write_json(path: Path, content: object) -> None:
    """Write JSON, completely or not at all."""
    write_atomically(path, json.dumps(content, indent=2) + "\n")
