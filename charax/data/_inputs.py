"""Inputs without labels, to predict from."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from charax.data._encoder import TableEncoder
from charax.data.files._dispatch import find_path, read_named_inputs
from charax.data.files._kind import InputSpec


def read_inputs(
    path: Path | str,
    *,
    shape: tuple[int, ...],
    columns: Sequence[str] = (),
    max_value: float | None = None,
    encoder: TableEncoder | None = None,
) -> tuple[Shaped[np.ndarray, "n *shape"], list[str]]:
    """Read raw inputs for a trained model from a file or a folder; `Standardizer.apply` comes next.

    A table may have more columns than the model reads, in any order.

    Args:
        path: An `.npz` with `x`, a table (`.csv`, `.tsv`, `.txt`, `.parquet` or `.xlsx`), an image, or a folder of
            images.
        shape: `Dataset.input_shape` of the training data.
        columns: The columns of numbers that the model reads, if there is no encoder.
        max_value: `Dataset.standardizer.max_value` of the training data.
        encoder: `Dataset.encoder` of the training data: the columns of a table are encoded as they were there.

    Returns:
        The raw inputs, and a name for each: its file, its row or its index.

    Raises:
        DataError: If the file cannot be read, or has other inputs than the model reads.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import read_inputs

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.csv"
        path.write_text("width,name,height\\n1.5,a,2\\n")
        raw, names = read_inputs(path, shape=(2,), columns=("height", "width"))
    assert raw.tolist() == [[2.0, 1.5]] and names == ["2"]
    ```
    """
    inputs, names = read_named_inputs(find_path(path), InputSpec(shape, tuple(columns), max_value, encoder))
    return inputs, names
