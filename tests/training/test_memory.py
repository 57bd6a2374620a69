"""Freed memory that stays in the process."""

from charax.training.memory import keep_freed_memory


def test_what_the_user_set_for_malloc_is_left_alone(monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert not keep_freed_memory()
