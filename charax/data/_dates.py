"""Dates as people write them, in days since 1970."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64

ISO = "ISO8601"
"""Year, month and day, perhaps with a time: 2020-01-31 or 2020-01-31T12:00."""
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y")
FORMATS = (ISO, *(f"{day}{time}" for day in _DAYS for time in ("", " %H:%M", " %H:%M:%S")))
"""The formats that are recognized, in the notation of `datetime.strptime`."""
_LENGTHS = range(6, 40)


class AmbiguousDateError(ValueError):
    """Dates that have another order of day and month in another format; one of them is the only argument."""


def find_date_format(texts: Sequence[str]) -> str | None:
    """Find the format in which all texts are dates; None if they are not dates."""
    if not texts or not all(len(text) in _LENGTHS and text[0].isdecimal() for text in texts):
        return None
    few = texts[:10]
    found = [each for each in FORMATS if not np.isnan(parse_dates(few, each)).any()]
    found = [each for each in found if not np.isnan(parse_dates(texts, each)).any()]
    if len(found) > 1:
        days = [parse_dates(texts, each) for each in found]
        different = np.any([other != days[0] for other in days[1:]], axis=0)
        if different.any():
            raise AmbiguousDateError(texts[int(np.argmax(different))])
    return found[0] if found else None


def wrong_dates(texts: Sequence[str]) -> Bool[np.ndarray, "texts"]:
    """Mark the texts because of which not all of them are dates, in the format that most of them have."""
    wrong = np.isnan([parse_dates(texts, each) for each in FORMATS])
    return wrong[np.argmin(wrong.sum(axis=1))]


def parse_dates(texts: Sequence[str], date_format: str) -> Float64[np.ndarray, "texts"]:
    """Convert dates to days since 1970, with NaN for what is not a date in this format."""
    import pandas as pd  # slow to import

    dates = pd.to_datetime(np.asarray(texts, object), format=date_format, errors="coerce", utc=True).tz_localize(None)
    days = dates.to_numpy().astype("datetime64[us]").astype(np.int64) / 86_400e6
    return np.where(dates.isna(), np.nan, days)
