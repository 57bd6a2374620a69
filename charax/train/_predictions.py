"""What a trained model answers: tables of predictions, and samples."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32


class Predictions(NamedTuple):
    """Predictions for new inputs, as a table of text.

    ```python
    from charax import Predictions

    predictions = Predictions(["row", "class"], [["1", "setosa"]])
    assert predictions.keep(["name"], [["a flower"]]).rows == [["a flower", "1", "setosa"]]
    ```
    """

    columns: list[str]
    """Names of the columns."""
    rows: list[list[str]]
    """One row per input."""
    shown: int = 8
    """How many of the first columns fit on a terminal."""
    failed: int = 0
    """Rows without an answer; their column `status` says why."""
    inputs: int = 1
    """How many of the first columns describe the input."""
    meanings: tuple[str, ...] = ()
    """What the columns are, one line for each kind of column."""

    def keep(self, names: Sequence[str], cells: Sequence[Sequence[str]]) -> "Predictions":
        """Put columns of the user before the predictions.

        A column of the predictions that has the name of one of them is called `predicted NAME`.

        Args:
            names: The names of the columns.
            cells: One row of texts per input.

        Returns:
            The table with these columns.

        Raises:
            ValueError: If there is another number of rows.
        """
        if len(cells) != len(self.rows):
            raise ValueError(
                f"columns can be kept only where every row has one prediction: there are {len(cells)} rows and "
                f"{len(self.rows)} predictions"
            )
        inputs = self.columns[: self.inputs]
        kept = [i for i, name in enumerate(names) if name not in inputs]
        chosen = [names[i] for i in kept]
        columns = [*inputs, *(f"predicted {name}" if name in chosen else name for name in self.columns[self.inputs :])]
        rows = [[*(cell[i] for i in kept), *row] for cell, row in zip(cells, self.rows, strict=True)]
        meanings = (*self.meanings, *((f"{', '.join(chosen)}: as in the inputs",) if chosen else ()))
        return self._replace(columns=[*chosen, *columns], rows=rows, shown=self.shown + len(chosen), meanings=meanings)

    def write(self, path: Path) -> None:
        """Write a CSV file with a header. An existing file is replaced only when the new one is complete.

        Args:
            path: The file.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        with part.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)
        part.replace(path)


class GeneratedSamples(NamedTuple):
    """Samples from a learned density, in the units of the data.

    ```python
    import numpy as np
    from charax.train import GeneratedSamples

    samples = GeneratedSamples(np.zeros((4, 2), np.float32), max_value=None)
    assert samples.values.shape == (4, 2)
    ```
    """

    values: Float32[np.ndarray, "n *shape"]
    """The samples."""
    max_value: float | None
    """The value of a fully bright pixel, if they are images."""
    classes: list[str] | None = None
    """The class of each sample, if the density is conditional."""


def mark_failures(
    table: Predictions,
    failed: Bool[np.ndarray, "rows"],
    *,
    inputs: int,
    names: Sequence[str],
    reason: str,
    strict: bool,
) -> Predictions:
    """Leave the answers of failed rows empty, and say why in a column `status`.

    Args:
        table: The answers of all rows.
        failed: Which rows have no answer.
        inputs: The first columns, which describe the input and are kept.
        names: What an error calls each row.
        reason: Why a row has no answer, and what to do.
        strict: Raise instead.

    Returns:
        The table; without a column `status` if no row failed.

    Raises:
        RuntimeError: With `strict`, if a row failed.

    ```python
    import numpy as np
    from charax.train import Predictions, mark_failures

    table = Predictions(["row", "class"], [["1", "setosa"], ["2", "setosa"]])
    failed = np.array([False, True])
    marked = mark_failures(table, failed, inputs=1, names=["row 1", "row 2"], reason="the solve failed", strict=False)
    assert marked.rows == [["1", "setosa", "ok"], ["2", "", "the solve failed"]]
    ```
    """
    count = int(failed.sum())
    if not count:
        return table
    if strict:
        raise RuntimeError(f"{names[int(np.argmax(failed))]}: {reason}")
    rows = [
        [*row[:inputs], *[""] * (len(row) - inputs), reason] if bad else [*row, "ok"]
        for row, bad in zip(table.rows, failed, strict=True)
    ]
    meanings = (*table.meanings, "status: ok, or why the row has no answer")
    return table._replace(columns=[*table.columns, "status"], rows=rows, failed=count, meanings=meanings)
