"""The error that every reader raises, and the warning about what a reader changed."""

_LONGEST, _HEAD, _TAIL = 1000, 600, 300


class DataError(ValueError):
    """Data that cannot be used. The message names the file, the row where there is one, and the fix.

    It quotes what files hold, so that it is cut if it is too long to be read, and control characters are escaped.

    ```python
    from charax.data import DataError, load_dataset

    try:
        load_dataset("no-such-file.csv")
    except DataError as error:
        assert "no-such-file.csv" in str(error)
    ```
    """

    def __init__(self, message: str):
        """Describe what is wrong.

        Args:
            message: One sentence.
        """
        text = message if message.isprintable() else "".join(map(_escape, message))
        super().__init__(text if len(text) <= _LONGEST else f"{text[:_HEAD]} … {text[-_TAIL:]}")


def _escape(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


class DataWarning(UserWarning):
    """Data were changed to make them usable. The message says what was done; the command line prints it as one line.

    ```python
    import warnings
    from charax.data import DataWarning

    warnings.simplefilter("ignore", DataWarning)  # if it is what you want
    ```
    """
