"""Find the files of a data set, or download them and verify their checksums."""

import os
from pathlib import Path

from charax.data._errors import DataError
from charax.data.sources._catalogue import find_source
from charax.data.sources._source import Source


def fetch(name: str) -> Path:
    """Find the files of a data set under `$CHARAX_DATA` or in the cache, or download them into the cache.

    A download must have its published MD5. Files that the user put under `$CHARAX_DATA/<name>/` are used as they are;
    the readers check their structure.

    Args:
        name: The name of the data set, one of `DATASETS`.

    Returns:
        The folder with the files.

    Raises:
        DataError: If there is no such data set, or no mirror serves a valid file.

    ```python
    from charax.data import fetch

    assert (fetch("digits") / "digits.csv.gz").is_file()
    ```
    """
    source = find_source(name)
    if source.find_folder is not None:
        return source.find_folder()
    own = _own_folder(name)
    if own is not None and all((own / file).is_file() for file in source.files):
        return own
    import pooch  # slow to import

    cache = Path(pooch.os_cache("charax")) / name
    for file in source.files:
        if not (cache / file).is_file():
            download(source, file, cache)
    return cache


def download(source: Source, file: str, folder: Path) -> Path:
    """Download one file into a folder, from the first mirror that serves it with the right MD5."""
    import pooch  # slow to import

    reasons = []
    for mirror in source.mirrors:
        try:
            path = pooch.retrieve(mirror + file, known_hash=f"md5:{source.files[file]}", fname=file, path=folder)
        except (OSError, ValueError) as error:  # no network, no such page or a full disk; another MD5
            altered = not isinstance(error, OSError)
            reasons.append(f"{mirror} ({'its file has another MD5' if altered else type(error).__name__})")
        else:
            return Path(path)
    own = _own_folder(source.name) or f"$CHARAX_DATA/{source.name}"
    raise DataError(
        f"{file} of {source.name} could not be downloaded into {folder} from {' or '.join(reasons)}: "
        f"check the network and try again, or put the file into {own}"
    )


def _own_folder(name: str) -> Path | None:
    root = os.environ.get("CHARAX_DATA")
    if not root:
        return None
    folder = Path(root).expanduser()
    if not folder.is_dir():
        raise DataError(f"CHARAX_DATA is set to {root}, which is not a folder: correct it or unset it")
    return folder / name
