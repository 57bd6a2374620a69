"""`charax …`: parse, call, and tell. Everything else is in the library."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import tyro
from rich.console import Console

from charax.cli import (  # the commands register themselves
    catalogue,
    reproduce,
    reproduce_flows,
    reproduce_pde,
    reproduce_timeseries,
    select,
    training,
)
from charax.cli.app import app
from charax.train._process import tune_process

__all__ = [
    "app",
    "catalogue",
    "main",
    "reproduce",
    "reproduce_flows",
    "reproduce_pde",
    "reproduce_timeseries",
    "select",
    "training",
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0 for success, 2 for bad usage or input, 1 for anything else."""
    _keep_compiled_programs()
    tune_process()
    try:
        app.cli(
            prog="charax",
            description="Characteristic Neural ODEs.",
            args=arguments,
            config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes),
        )
    except (ValueError, OSError) as error:
        return _fail(error, 2)
    except RuntimeError as error:
        return _fail(error, 1)
    except KeyboardInterrupt as stop:
        # A run that a signal stopped says which, and how to go on.
        return _fail(str(stop) or "interrupted", 128 + getattr(stop, "signal", signal.SIGINT))
    return 0


def _keep_compiled_programs() -> None:
    """From one command to the next; JAX's own variables, which it has read by now, move the place."""
    import jax

    if jax.config.values["jax_compilation_cache_dir"] is None:
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "charax" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(cache))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def _fail(reason: object, status: int) -> int:
    # Not folded to the width of the terminal, so that a path in it stays whole.
    Console(stderr=True).print(f"charax: {reason}", style="red", markup=False, highlight=False, soft_wrap=True)
    return status
