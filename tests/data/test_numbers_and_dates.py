"""Numbers and dates as people write them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from charax.data._dates import FORMATS, ISO, AmbiguousDateError, find_date_format, parse_dates
from charax.data.files._numbers import AmbiguousNumberError, is_number, parse_numbers

NUMBERS = {
    "plain": (["1", "-2.5", "1e3", ".5", "1.234"], ".", [1, -2.5, 1000, 0.5, 1.234]),
    "decimal commas": (["1,5", "2", "-,5", "1,5e3"], ".", [1.5, 2, -0.5, 1500]),
    "commas that cannot be thousands": (["1,234", "0,125"], ".", [1.234, 0.125]),
    "thousands with a point": (["1,234.5", "12", "1,234,567"], ".", [1234.5, 12, 1234567]),
    "thousands with a comma": (["1.234,5", "12"], ",", [1234.5, 12]),
    "points in a file of commas": (["1.5", "2.25"], ",", [1.5, 2.25]),
    "a word": (["1", "blue"], ".", None),
    "points and commas": (["1.5", "2,5"], ".", None),
    "groups of two": (["1,23,456.5"], ".", None),
    "none": ([], ".", []),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_are_read_in_one_way_for_all(case):
    texts, decimal, expected = NUMBERS[case]
    assert parse_numbers(texts, decimal) == expected


@pytest.mark.parametrize(("text", "decimal"), [("1,234", "."), ("1.234", ",")])
def test_thousands_that_may_be_decimals_are_ambiguous(text, decimal):
    with pytest.raises(AmbiguousNumberError, match=text):
        parse_numbers(["1", text], decimal)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.sampled_from(",."))
def test_a_number_with_either_decimal_sign_is_a_number(value, sign):
    text = repr(float(value)).replace(".", sign)
    assert is_number(text)
    assert parse_numbers([text, f"0{sign}5"], sign) == [value, 0.5]


DATES = [18_262.0, 18_292.5, 18_627.25]
TEXTS = {
    ISO: ["2020-01-01", "2020-01-31T12:00", "2020-12-31 06:00:00"],
    "%d.%m.%Y %H:%M": ["01.01.2020 00:00", "31.1.2020 12:00", "31.12.2020 06:00"],
    "%d/%m/%Y %H:%M:%S": ["01/01/2020 00:00:00", "31/01/2020 12:00:00", "31/12/2020 06:00:00"],
    "%m/%d/%Y %H:%M": ["01/01/2020 00:00", "01/31/2020 12:00", "12/31/2020 06:00"],
}


@pytest.mark.parametrize("date_format", TEXTS)
def test_the_format_of_dates_is_found_out(date_format):
    assert find_date_format(TEXTS[date_format]) == date_format
    np.testing.assert_array_equal(parse_dates(TEXTS[date_format], date_format), DATES)


def test_every_format_reads_what_it_writes():
    moment = np.datetime64("2020-12-31T00:00:00").item()
    for each in FORMATS[1:]:
        np.testing.assert_array_equal(parse_dates([moment.strftime(each)], each), [18_627.0])


@pytest.mark.parametrize("texts", [["2020-01-01", "soon"], ["a", "b"], ["12", "13"], ["1-2-3x"], [], ["31/31/2020"]])
def test_other_texts_are_not_dates(texts):
    assert find_date_format(texts) is None


def test_a_day_that_may_be_a_month_is_ambiguous():
    with pytest.raises(AmbiguousDateError, match="01/02/2020"):
        find_date_format(["03/03/2020", "01/02/2020"])
    assert find_date_format(["03/03/2020", "01/02/2020", "13/02/2020"]) == "%d/%m/%Y"
