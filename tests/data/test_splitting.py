import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from charax.data import stratified_split


@given(
    counts=st.lists(st.integers(3, 40), min_size=1, max_size=5),
    fractions=st.tuples(st.floats(0.01, 0.49), st.floats(0.01, 0.49)),
    seed=st.integers(0, 2**32),
)
def test_every_sample_is_in_one_part_and_every_class_in_every_part(counts, fractions, seed):
    targets = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    classes = [str(i) for i in range(len(counts))]
    parts = stratified_split(targets, fractions, seed=seed, classes=classes, source="test")
    assert sorted(np.concatenate(parts)) == list(range(len(targets)))
    for part in parts:
        assert (np.bincount(targets[part], minlength=len(counts)) > 0).all()
    again = stratified_split(targets, fractions, seed=seed, classes=classes, source="test")
    assert all(np.array_equal(part, same) for part, same in zip(parts, again, strict=True))


def test_each_part_has_its_fraction_of_each_class_in_mixed_order():
    targets = np.repeat(np.arange(2, dtype=np.int32), [100, 1000])
    train, validation, test = stratified_split(targets, [0.1, 0.2], seed=0, classes="ab", source="test")
    assert [np.bincount(targets[part]).tolist() for part in (train, validation, test)] == [
        [70, 700],
        [10, 100],
        [20, 200],
    ]
    assert len(set(targets[train][:100].tolist())) == 2


@pytest.mark.parametrize("fractions", [[0.0], [0.5, 0.5], [-0.1, 0.2]])
def test_fractions_must_leave_something_to_train_on(fractions):
    with pytest.raises(ValueError, match="fractions must be positive"):
        stratified_split(np.zeros(10, np.int32), fractions, seed=0, classes="a", source="test")
