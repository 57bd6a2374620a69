"""The folder of a run: one process at a time, and what to say if it cannot be written to."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from charax.train._stopping import SaveError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}
_FULL_WORDS = ("No space left", "Disk quota", "RESOURCE_EXHAUSTED")


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep a folder for this process. The lock ends with the process, however that ends, and leaves no file behind.

    Args:
        folder: The folder, which exists.

    Yields:
        Nothing.

    Raises:
        ValueError: If another process has the folder.
    """
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows has no locks of folders
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"{folder} is in use by another process that trains there: wait until it ends, or stop it"
            ) from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def explain_failed_write(folder: Path) -> Iterator[None]:
    """Say why the folder of a run could not be written to, what is kept, and how to resume it.

    Args:
        folder: The folder of the run.

    Yields:
        Nothing.

    Raises:
        SaveError: If what is inside fails.
    """
    try:
        yield
    except SaveError:
        raise
    except Exception as error:  # checkpoints fail in other ways than with an OSError
        kept = find_checkpoints(folder)
        if kept:
            advice = f"the run is kept up to step {kept[-1]}; then resume it: charax resume {folder}"
        else:
            advice = "nothing was saved before; then train again"
        raise SaveError(f"{_explain(folder, error)}; {advice}") from error


def find_checkpoints(folder: Path) -> list[int]:
    """The numbers of the complete checkpoints of a run, in order."""
    try:
        names = [path.name for path in (folder / "checkpoints").iterdir()]
    except OSError:
        return []
    return sorted(int(name) for name in names if name.isdecimal())


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Make a folder, and remove it again, with those above it that had to be made, if nothing worth keeping is in it.

    A run that fails is worth keeping from its first checkpoint on. One that is interrupted always is.

    Args:
        folder: A folder that does not exist yet, or is empty.

    Yields:
        Nothing.

    Raises:
        ValueError: If it cannot be made.
    """
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ValueError(f"{folder} cannot be made: {reason}; choose another place with --output") from None
    try:
        yield
    except Exception:
        if not find_checkpoints(folder) and folder.is_dir():
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # another run was made there meanwhile
                for each in made:
                    each.rmdir()
        raise


def _explain(folder: Path, error: BaseException) -> str:
    codes = {each.errno for each in _chain(error) if isinstance(each, OSError)}
    texts = " ".join(str(each) for each in _chain(error))
    if not folder.is_dir():
        return f"{folder} was removed while the run was writing to it: leave it in place"
    if codes & _FULL or any(words in texts for words in _FULL_WORDS):
        return f"{folder} cannot be written to, the disk is full: free some space"
    if codes & _READ_ONLY or not os.access(folder, os.W_OK):
        return f"{folder} cannot be written to, it is read-only: make it writable"
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return f"{folder} cannot be written to ({reason[:200]}): remove the cause"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
