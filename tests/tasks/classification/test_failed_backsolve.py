"""A backward solve that fails ends as skipped steps and status 1, however JAX dispatches its work."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import diffrax
import pytest

pytestmark = pytest.mark.slow  # tests/train/test_failed_solves.py raises the same error, and compiles in a blink
ROOT = Path(__file__).parents[3]
FLAGS = "--method node --width 4 --solver dopri5 --rtol 1e-3 --adjoint backsolve --epochs 2 --batch-size 32"
WORDS = "10 steps in a row were skipped, up to step 10: the solve failed each time: loosen the tolerance (rtol 1e-03)"


def test_with_asynchronous_dispatch(monkeypatch, blobs, refuse, tmp_path):
    monkeypatch.setattr(diffrax, "BacksolveAdjoint", functools.partial(diffrax.BacksolveAdjoint, max_steps=1))
    place = ["--data", blobs, "--output", tmp_path]
    assert WORDS in refuse("train", "classify", *FLAGS.split(), *place, status=1)


def test_with_synchronous_dispatch(blobs, tmp_path):
    code = (
        "import functools, sys, diffrax; "
        "diffrax.BacksolveAdjoint = functools.partial(diffrax.BacksolveAdjoint, max_steps=1); "
        "from charax.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, "train", "classify", *FLAGS.split(), "--data", blobs, "--output", tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_CPU_ENABLE_ASYNC_DISPATCH": "false"},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1, ended.stderr
    assert WORDS in ended.stderr
    assert "Traceback" not in ended.stderr
