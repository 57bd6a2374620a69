"""A line to report on, and a window to look at the report."""

from collections.abc import Iterator

import pytest

from tests.report.browser import Page, open_browser
from tests.train.conftest import Line
from tests.train.line_task import LineConfig


@pytest.fixture
def line() -> Line:
    config = LineConfig()
    data = config.load_data()
    return Line(config.build_task(data.spec), data.splits)


@pytest.fixture(scope="session")
def window() -> Iterator[Page]:
    with open_browser() as page:
        yield page
