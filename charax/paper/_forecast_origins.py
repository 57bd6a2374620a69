"""Rolling origins: the same test at several times, so that it does not depend on the few values after one of them."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def cut_series(source: Path, target: Path, rows: int, *, series: str = "series") -> Path:
    """Copy a table of series with the first rows of each.

    Args:
        source: A `.csv` with a row per series and time.
        target: The file to write.
        rows: The maximum number of rows per series.
        series: The column that names the series.

    Returns:
        The file that was written.
    """
    seen: dict[str, int] = {}
    with source.open(newline="") as old, target.open("w", newline="") as new:
        reader = csv.DictReader(old)
        writer = csv.DictWriter(new, reader.fieldnames or ())
        writer.writeheader()
        for row in reader:
            seen[row[series]] = seen.get(row[series], 0) + 1
            if seen[row[series]] <= rows:
                writer.writerow(row)
    return target


def pool_origins(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Pool errors and coverages over origins; each value that is ahead counts once per forecast of it.

    Args:
        found: The result at each origin, with the number of its values.

    Returns:
        One result.
    """
    counts = [one["values"] for one in found]
    total = sum(counts)
    average = lambda numbers: sum(n * number for n, number in zip(counts, numbers, strict=True)) / total
    each = lambda method, key: [one["methods"][method][key] for one in found]
    methods = {
        method: {
            "scaled_rmse": math.sqrt(average([error**2 for error in each(method, "scaled_rmse")])),
            "covered": average(each(method, "covered")),
        }
        for method in found[0]["methods"]
    }
    seconds = sum(one["seconds"] for one in found)
    return {"methods": methods, "parameters": found[0]["parameters"], "values": total, "seconds": seconds}
