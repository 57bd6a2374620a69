"""Splits of a data set, chosen by a seed, with every class in every split."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int, Int32

from charax.data._errors import DataError


class Split(NamedTuple):
    """The training, validation or test split of a data set.

    ```python
    from charax.data import load_dataset

    inputs, targets = load_dataset("digits").validation
    assert inputs.shape[1:] == (8, 8, 1) and len(targets) == len(inputs)
    ```
    """

    inputs: Float32[np.ndarray, "n *shape"]
    """What the model reads: NHWC images, or rows of features; `AbstractStoredRows` if they are too large for memory."""
    targets: Int32[np.ndarray, "n"]
    """Class indices."""


def stratified_split(
    targets: Int32[np.ndarray, "n"],
    fractions: Sequence[float],
    *,
    seed: int,
    classes: Sequence[str],
    source: str,
) -> list[Int[np.ndarray, "_"]]:
    """Split samples at random so that each split has its fraction of every class, and at least one sample of it.

    Args:
        targets: The class index of each sample.
        fractions: The size of each held-out split, as a fraction of all samples.
        seed: Seed of the random order.
        classes: The names of the classes.
        source: What an error names, usually a file.

    Returns:
        Shuffled indices: first those of the remaining samples, to train on, then those of a split for each fraction.

    Raises:
        ValueError: If a fraction is not positive, or nothing remains to train on.
        DataError: If a class has too few samples.

    ```python
    import numpy as np
    from charax.data import stratified_split

    targets = np.repeat(np.arange(2, dtype=np.int32), 10)
    train, test = stratified_split(targets, [0.2], seed=0, classes=("a", "b"), source="example")
    assert len(train) == 16 and np.bincount(targets[test]).tolist() == [2, 2]
    ```
    """
    if min(fractions) <= 0 or sum(fractions) >= 1:
        raise ValueError(f"fractions must be positive and leave something to train on, got {list(fractions)}")
    generator = np.random.default_rng(seed)
    splits: list[list[np.ndarray]] = [[] for _ in range(len(fractions) + 1)]
    for label, name in enumerate(classes):
        members = generator.permutation(np.flatnonzero(targets == label))
        if len(members) < len(splits):
            count = ("no samples", "only 1 sample", f"only {len(members)} samples")[min(len(members), 2)]
            raise DataError(
                f"{source}: class {name!r} has {count}; {len(splits)} splits need at least {len(splits)} of each "
                "class: add some, or remove the class"
            )
        sizes = [max(1, round(fraction * len(members))) for fraction in fractions]
        while sum(sizes) >= len(members):  # so few that rounding up left none to train on
            sizes[int(np.argmax(sizes))] -= 1
        cuts = np.cumsum(sizes)
        for split, chosen in zip(splits, (members[cuts[-1] :], *np.split(members[: cuts[-1]], cuts[:-1])), strict=True):
            split.append(chosen)
    return [generator.permutation(np.concatenate(split)) for split in splits]
