"""Find the files of a data set, or download them and verify their checksum."""

import os
from pathlib import Path

from charax.data._catalogue import Source, find_source
from charax.data._errors import DataError


def fetch(name: str) -> Path:
    """The folder that holds the files of a data set: under `$CHARAX_DATA`, in the cache, or downloaded into it.

    What is downloaded must have its published MD5. What a user put under `$CHARAX_DATA/<name>/` is taken
    as it is; the readers check its structure.

    ```python
    from charax.data import fetch

    assert (fetch("digits") / "digits.csv.gz").is_file()
    ```
    """
    source = find_source(name)
    if not source.files:
        import sklearn.datasets  # slow to import, and needed by one data set only

        return Path(str(sklearn.datasets.__file__)).parent / "data"
    own = _own_folder(name)
    if own is not None and all((own / file).is_file() for file in source.files):
        return own
    import pooch

    cache = Path(pooch.os_cache("charax")) / name
    for file in source.files:
        if not (cache / file).is_file():
            download(source, file, cache)
    return cache


def download(source: Source, file: str, folder: Path) -> Path:
    """Download one file into `folder` from the first mirror that serves it with the right MD5."""
    import pooch

    reasons = []
    for mirror in source.mirrors:
        try:
            path = pooch.retrieve(mirror + file, known_hash=f"md5:{source.files[file]}", fname=file, path=folder)
        except (OSError, ValueError) as error:  # no network, no such page, no room on the disk; another MD5
            altered = not isinstance(error, OSError)
            reasons.append(f"{mirror} ({'its file is altered: another MD5' if altered else type(error).__name__})")
        else:
            return Path(path)
    place = _own_folder(source.name) or f"$CHARAX_DATA/{source.name}"
    raise DataError(
        f"{file} of {source.name} could not be downloaded into {folder} from {' or '.join(reasons)}: "
        f"check the network and try again, or put the file into {place}"
    )


def _own_folder(name: str) -> Path | None:
    root = os.environ.get("CHARAX_DATA")
    if not root:
        return None
    folder = Path(root).expanduser()
    if not folder.is_dir():
        raise DataError(f"CHARAX_DATA is set to {root}, which is not a folder: correct it or unset it")
    return folder / name
