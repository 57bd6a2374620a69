"""A peer: a Python with PyTorch that is asked to make a model and to run it. It is idle while we are timed."""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-peers" / "bin" / "python"


class Peer:
    """One subprocess, which holds one model at a time."""

    def __init__(self):
        if not PYTHON.exists():
            raise FileNotFoundError(f"{PYTHON} does not exist: make it with `make peers`")
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [PYTHON, "-m", "benchmarks.peers.worker"],
            cwd=ROOT,
            # What `tune_process` does with malloc for us.
            env=os.environ | {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()

    def prepare(self, case: str, arrays: dict[str, np.ndarray], **sizes: Any) -> None:
        """Make the model of a case from our weights and inputs."""
        path = Path(self._folder.name) / "arrays.npz"
        np.savez(path, **arrays)  # pyright: ignore[reportArgumentType]
        self._ask(do="prepare", case=case, arrays=str(path), sizes=sizes)

    def run(self, how: str, inner: int = 1) -> dict[str, Any]:
        """Run it: `seconds` of one of `inner` runs, `nfe` forward."""
        return self._ask(do="run", how=how, inner=inner)

    def outputs(self, how: str) -> dict[str, np.ndarray]:
        """What it computes, to compare."""
        path = Path(self._folder.name) / "outputs.npz"
        self._ask(do="outputs", how=how, path=str(path))
        with np.load(path) as arrays:
            return dict(arrays)

    def _ask(self, **question: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the peer stopped while it was asked to {question['do']}; its error is above")
        return json.loads(line)
