"""Split samples by seed, with every class in every part."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int, Int32

from charax.data._errors import DataError


def stratified_split(
    targets: Int32[np.ndarray, "n"],
    fractions: Sequence[float],
    *,
    seed: int,
    classes: Sequence[str],
    source: str,
) -> list[Int[np.ndarray, "_"]]:
    """Shuffled indices of the rest, then of a part for each fraction.

    A part has its fraction of every class, rounded, and at least one sample of it. `source` is what
    an error names.

    ```python
    import numpy as np
    from charax.data import stratified_split

    targets = np.repeat(np.arange(2, dtype=np.int32), 10)
    rest, part = stratified_split(targets, [0.2], seed=0, classes=("a", "b"), source="example")
    assert len(rest) == 16 and np.bincount(targets[part]).tolist() == [2, 2]
    ```
    """
    if min(fractions) <= 0 or sum(fractions) >= 1:
        raise ValueError(f"fractions must be positive and leave something to train on, got {list(fractions)}")
    generator = np.random.default_rng(seed)
    parts: list[list[np.ndarray]] = [[] for _ in range(len(fractions) + 1)]
    for label, name in enumerate(classes):
        members = generator.permutation(np.flatnonzero(targets == label))
        if len(members) < len(parts):
            count = ("no samples", "only 1 sample", f"only {len(members)} samples")[min(len(members), 2)]
            raise DataError(
                f"{source}: class {name!r} has {count}; a split into {len(parts)} parts needs at least "
                f"{len(parts)} of each class: add some, or remove the class"
            )
        sizes = [max(1, round(fraction * len(members))) for fraction in fractions]
        while sum(sizes) >= len(members):  # so few that rounding up left none to train on
            sizes[int(np.argmax(sizes))] -= 1
        cuts = np.cumsum(sizes)
        for part, chosen in zip(parts, (members[cuts[-1] :], *np.split(members[: cuts[-1]], cuts[:-1])), strict=True):
            part.append(chosen)
    return [generator.permutation(np.concatenate(part)) for part in parts]
