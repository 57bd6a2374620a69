"""Limits that are checked before memory is taken, so that no file can fill the machine."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from charax.data._errors import DataError

_BYTES_PER_CELL = 40
"""What reading a cell of a text file takes at its peak: the text, a column in double precision, arrays made from it."""


class Limit(NamedTuple):
    """A limit and the environment variable that sets it.

    ```python
    from charax.data import LIMITS

    assert LIMITS["cells"].variable == "CHARAX_MAX_CELLS"
    ```
    """

    variable: str
    """The environment variable."""
    default: int
    """The limit if the variable is not set."""
    what: str
    """What is counted, in the plural."""

    @property
    def value(self) -> int:
        """The limit that holds now."""
        text = os.environ.get(self.variable)
        if text is None:
            return self.default
        if not (text.isascii() and text.isdecimal() and 0 < len(text) < 19):
            raise ValueError(f"{self.variable} must be a whole number above 0, got {text!r}")
        return int(text)


def _limits(**limits: tuple[int, str]) -> Mapping[str, Limit]:
    return MappingProxyType({name: Limit(f"CHARAX_MAX_{name.upper()}", *limit) for name, limit in limits.items()})


LIMITS: Mapping[str, Limit] = _limits(
    bytes=(2**30, "bytes"),
    memory=(2**29, "bytes"),
    members=(10_000, "members"),
    pages=(100_000, "pages"),
    footer=(2**23, "bytes in its footer"),
    lines=(10_000_000, "lines"),
    columns=(10_000, "columns"),
    cells=(20_000_000, "cells"),
    files=(1_000_000, "files"),
    pixels=(2**28, "pixels"),
    json=(2**26, "bytes of JSON"),
    parameters=(100_000_000, "parameters"),
    width=(65_536, "units"),
    k=(1024, "dimensions"),
    blocks=(64, "blocks"),
    steps=(10_000, "steps"),
)
"""The limits by name. Each is set by an environment variable, `CHARAX_MAX_` and the name in capitals."""


def check_limit(name: str, count: int, source: object, has: str = "has") -> None:
    """Refuse what is larger than a limit.

    Args:
        name: The name of the limit, one of `LIMITS`.
        count: How large it is.
        source: What the error names, usually a file.
        has: The verb of the error.

    Raises:
        DataError: If it is larger; the message names the variable that raises the limit.

    ```python
    from charax.data import DataError, check_limit

    try:
        check_limit("cells", 10**12, "huge.csv")
    except DataError as error:
        assert str(error).endswith("set CHARAX_MAX_CELLS=1000000000000 if that is meant")
    ```
    """
    limit = LIMITS[name]
    if count > limit.value:
        raise DataError(
            f"{source} {has} {count:,} {limit.what}, more than the limit of {limit.value:,}: set {limit.variable}="
            f"{count} if that is meant"
        )


def check_passed(name: str, count: int, source: object, has: str = "has") -> None:
    """Refuse what is larger than a limit and not counted to its end."""
    limit = LIMITS[name]
    if count > limit.value:
        raise DataError(
            f"{source} {has} more than {limit.value:,} {limit.what}, the limit: set {limit.variable} to a larger "
            "number if that is meant"
        )


def most_cells(path: Path) -> int:
    """The largest number of cells that a text file may have in memory.

    A file that is small on disk is held to the limit. One with at least two characters for each of its cells may have
    more of them, if the variable is not set and half of the machine's memory holds them.

    Args:
        path: The file, which exists.

    Returns:
        The number of cells.
    """
    limit = LIMITS["cells"]
    if limit.variable in os.environ:
        return limit.value
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return max(limit.value, min(path.stat().st_size // 2, physical // 2 // _BYTES_PER_CELL))


def check_regular(path: Path) -> None:
    """Refuse what is not a file: reading a pipe or a device may never end.

    Args:
        path: What should be a file. One that does not exist is left to whoever opens it.

    Raises:
        DataError: If it is a folder, a pipe, a device or a socket.

    ```python
    from pathlib import Path
    from charax.data import DataError, check_regular

    try:
        check_regular(Path.home())
    except DataError as error:
        assert str(error).endswith("is a folder, not a file")
    ```
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        raise DataError(f"{path} is {_name_type(mode)}, not a file")


def _name_type(mode: int) -> str:
    tests = {
        "a folder": stat.S_ISDIR,
        "a pipe": stat.S_ISFIFO,
        "a socket": stat.S_ISSOCK,
        "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
    }
    return next((name for name, test in tests.items() if test(mode)), "a special file")
