"""Commands, for every task."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from tests.train.commands import answer_of, reason_of


@pytest.fixture
def ask(capsys) -> Callable[..., dict[str, Any]]:
    """The answer of a command that succeeds."""
    return functools.partial(answer_of, capsys)


@pytest.fixture
def refuse(capsys) -> Callable[..., str]:
    """The sentence of a command that fails."""
    return functools.partial(reason_of, capsys)
