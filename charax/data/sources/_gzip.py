"""Read gzip files, whose own checksum is verified when their end is read."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from charax.data._errors import DataError
from charax.data._limits import check_passed, check_regular


class _Counted(gzip.GzipFile):
    """A file that ends with an error at the limit of bytes."""

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        check_passed("bytes", self.tell(), self.name, "unpacks to")
        return content


@contextmanager
def open_gzip(path: Path) -> Iterator[gzip.GzipFile]:
    """Open a compressed file; an error names it and says how it is damaged."""
    check_regular(path)
    try:
        with _Counted(path) as file:
            yield file
    except DataError:
        raise
    except EOFError:
        raise DataError(f"{path} is truncated: delete it and fetch it again") from None
    except (OSError, zlib.error) as error:
        raise DataError(f"{path} is not a valid gzip file ({error}): delete it and fetch it again") from None
