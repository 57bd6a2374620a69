"""The error that every reader raises."""


class DataError(ValueError):
    """Data that cannot be used. The message names the file, the row where there is one, and the fix.

    ```python
    from charax.data import DataError, load_dataset

    try:
        load_dataset("no-such-file.csv")
    except DataError as error:
        assert "no-such-file.csv" in str(error)
    ```
    """
