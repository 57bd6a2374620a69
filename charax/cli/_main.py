"""Entry points, exit status and error messages."""

import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence

_BROKEN_PIPE = 128 + 13
"""What a shell calls the end by SIGPIPE, which Windows does not have."""


def console_main() -> int:
    """Run the command of this process. Only here are the settings of the process made.

    Returns:
        The exit status.
    """
    from charax.train import tune_process, use_compilation_cache
    from charax.train._launch import die_with_launcher
    from charax.train._processes import end

    die_with_launcher()
    use_compilation_cache()
    return end(main(sys.argv[1:], prepare=tune_process))


def main(arguments: Sequence[str], *, prepare: Callable[[], None] | None = None) -> int:
    """Run a command.

    Args:
        arguments: The command and its flags.
        prepare: Called when the arguments are parsed, before the command itself.

    Returns:
        The exit status: 0 for success, 2 for bad usage or bad input, 1 for anything else.

    Raises:
        SystemExit: For bad usage and for `--help`, with the exit status.
    """
    try:
        from charax.cli._commands import parse_and_run

        parse_and_run(arguments, prepare)
    except ModuleNotFoundError as error:
        return _fail(f"{error}; this needs more packages: pip install 'charax[all]'", 1)
    except BrokenPipeError:  # whoever reads our output has seen enough: `charax runs | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except (ValueError, OSError, OverflowError) as error:
        return _fail(_one_line(error), 2)
    except MemoryError as error:
        return _fail(_one_line(error) or "there is not enough memory", 1)
    except RuntimeError as error:
        return _fail(_one_line(error), 1)
    except KeyboardInterrupt as stop:
        # A run that a signal stopped says which, and how to resume it.
        return _fail(str(stop) or "interrupted", 128 + getattr(stop, "signal", signal.SIGINT))
    except Exception as error:  # nobody has thought of it, so that whoever reads the report needs the traceback
        name = type(error).__name__
        return _fail(f"an unforeseen {name}; please report it with {_log(error)}, which has the traceback", 1)
    return 0


def _one_line(error: Exception) -> str:
    """The sentence of an error. Those of the libraries below may be pages, which are kept in a file."""
    text = str(error).strip()
    first = (text.splitlines() or [type(error).__name__])[0]
    return first if first == text else f"{first} (more in {_log(error)})"


def _log(error: Exception) -> str:
    """Write the traceback to a file, and name the file."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="charax-", suffix=".log", delete=False) as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return "no log, for the disk is full or read-only"
    return file.name


def _fail(reason: object, status: int) -> int:
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        print(f"charax: {reason}", file=sys.stderr)
        return status
    # Not folded to the width of the terminal, so that a path in it stays in one piece.
    Console(stderr=True).print(f"charax: {reason}", style="red", markup=False, highlight=False, soft_wrap=True)
    return status
