"""Read gzip files whole, so that their own checksum is always verified."""

import gzip
import zlib
from pathlib import Path

from charax.data._errors import DataError

# Several times the largest data set here: a small file that unpacks to more than this is not one of them.
_LIMIT = 2**30


def gunzip(path: Path) -> bytes:
    """Decompress a file; an error names it and says how it is damaged."""
    try:
        with gzip.open(path) as file:
            content = file.read(_LIMIT + 1)
    except EOFError:
        raise DataError(f"{path} is truncated: delete it and fetch it again") from None
    except (OSError, zlib.error) as error:
        raise DataError(f"{path} is not a valid gzip file ({error}): delete it and fetch it again") from None
    if len(content) > _LIMIT:
        raise DataError(f"{path} unpacks to more than {_LIMIT} bytes, so it is not the data set it is named after")
    return content
