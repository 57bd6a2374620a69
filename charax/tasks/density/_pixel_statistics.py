"""What a flow of images must know about their pixels."""

import itertools
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int
from scipy.fft import dctn
from scipy.special import logit

from charax.data import AbstractStoredRows
from charax.tasks.density._designs import alpha_of
from charax.tasks.density._names import PixelsName
from charax.tasks.density._spec import DensitySpec

_MOMENT_IMAGES, _COUNTED_IMAGES = 10_000, 60_000
"""Images of which moments, and histograms, are taken."""
_ROWS = 4_096
"""Images that are counted at once."""
_BINS = 16


def describe_pixels(
    spec: DensitySpec,
    images: Float[np.ndarray, "n height width channels"] | AbstractStoredRows,
    pixels: PixelsName | None = None,
) -> DensitySpec:
    """Add to a description what a matched flow must know about pixels.

    ```python
    from charax import DensityConfig
    from charax.tasks.density import describe_pixels

    data = DensityConfig(data="digits").load_data()
    assert len(describe_pixels(data.spec, data.splits.train.inputs).probabilities) == 64
    ```

    Args:
        spec: The description of a data set of images.
        images: The training images.
        pixels: How pixels become the state of the flow; whitened for colour images and through quantiles for grey ones
            by default.

    Returns:
        The description, with the statistics of the training images.
    """
    assert spec.levels is not None
    pixels = pixels or ("whitened" if spec.shape[-1] > 1 else "quantiles")
    if pixels == "logit":
        mean, std = logit_moments(images, spec.levels, alpha_of(spec.levels))
        return replace(spec, logit_mean=mean, logit_std=std)
    if pixels == "whitened":
        mean, std, rotation = whitening_moments(images, spec.levels)
        return replace(spec, pixel_mean=mean, coefficient_std=std, rotation=rotation)
    edges, probabilities = pixel_histograms(images, spec.levels)
    return replace(spec, edges=edges, probabilities=probabilities)


def logit_moments(
    images: Float[np.ndarray, "n height width channels"] | AbstractStoredRows, levels: int, alpha: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Compute the mean and the standard deviation of the logit of every pixel, with one draw of noise per image.

    ```python
    import numpy as np
    from charax.tasks.density import logit_moments

    mean, std = logit_moments(np.zeros((100, 1, 1, 1)), 256, 1e-6)
    assert mean[0] < -5
    ```

    Args:
        images: Images of whole grey levels.
        levels: The number of grey levels.
        alpha: Keeps the logit away from black and white.

    Returns:
        The means and the standard deviations, row by row.
    """
    rows = images[:_MOMENT_IMAGES]
    noise = np.random.default_rng(0).uniform(size=rows.shape)
    logits = logit(alpha + (1 - 2 * alpha) * (rows + noise) / levels)
    flat = logits.reshape(len(rows), -1)
    return tuple(flat.mean(axis=0).tolist()), tuple(flat.std(axis=0).clip(min=1e-2).tolist())


def whitening_moments(
    images: Float[np.ndarray, "n height width channels"] | AbstractStoredRows, levels: int
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Compute what whitens images: moments of pixels and of their cosine transform, with one draw of noise per image.

    ```python
    import numpy as np
    from charax.tasks.density import whitening_moments

    grey = np.tile(np.arange(100.0).reshape(100, 1, 1, 1), (1, 2, 2, 1))  # images of one level each
    mean, std, rotation = whitening_moments(grey, 100)
    assert std[0] > 50 * max(std[1:]) and rotation in ((1.0,), (-1.0,))
    ```

    Args:
        images: Images of whole grey levels.
        levels: The number of grey levels.

    Returns:
        The mean of every pixel, the standard deviation of every coefficient of the cosine transform of the rotated
        channels, and the rotation of the channels to their principal components, each row by row.
    """
    rows = np.asarray(images[:_MOMENT_IMAGES], np.float32)
    noise = np.random.default_rng(0).uniform(size=rows.shape).astype(np.float32)
    x = (rows + noise) / levels
    mean = x.mean(axis=0, dtype=float)
    x -= mean.astype(np.float32)
    channels = x.reshape(-1, x.shape[-1]).astype(float)
    _, rotation = np.linalg.eigh(channels.T @ channels)
    coefficients = np.asarray(dctn(x @ rotation.astype(np.float32), axes=(1, 2), norm="ortho"))
    # A coefficient that hardly varies in few images may vary more in others.
    std = coefficients.std(axis=0, dtype=float).clip(min=0.1 / levels)
    return _round(mean), _round(std), _round(rotation)


def pixel_histograms(
    images: Float[np.ndarray, "n height width channels"] | AbstractStoredRows, levels: int
) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """Compute a histogram of every pixel. The bins are those in which all pixels together are most likely.

    One image more is counted whose pixels have the distribution of all pixels, so that no bin is empty.

    ```python
    import numpy as np
    from charax.tasks.density import pixel_histograms

    black_or_white = np.array([0.0, 0.0, 3.0]).reshape(3, 1, 1, 1)
    edges, (histogram,) = pixel_histograms(black_or_white, 4)
    assert edges == (0.0, 0.25, 0.75, 1.0) and histogram == (0.625, 0.0625, 0.3125)
    ```

    Args:
        images: Images of whole grey levels.
        levels: The number of grey levels.

    Returns:
        The edges of the bins, from 0 to 1, and the probability of every bin, for every pixel, row by row.
    """
    count = min(len(images), _COUNTED_IMAGES)
    size = int(np.prod(images.shape[1:]))
    counts = np.zeros(size * levels, np.int64)
    for first in range(0, count, _ROWS):
        part = np.asarray(images[first : min(first + _ROWS, count)]).reshape(-1, size).astype(np.int64)
        counts += np.bincount((part + levels * np.arange(size)).ravel(), minlength=len(counts))
    counts = counts.reshape(size, levels)
    edges = _split_levels(counts.sum(axis=0), _BINS)
    bins = np.add.reduceat(counts, edges[:-1], axis=1)
    # A level that never occurred is as rare as can be, and not impossible.
    pooled = np.maximum(bins.sum(axis=0), 1)
    probabilities = (bins + pooled / pooled.sum()) / (count + 1)
    return tuple((edges / levels).tolist()), tuple(map(_round, probabilities))


def _round(values: np.ndarray) -> tuple[float, ...]:
    """Six digits of every number, row by row."""
    return tuple(float(f"{value:.6g}") for value in values.ravel())


def _split_levels(counts: Int[np.ndarray, "levels"], bins: int) -> Int[np.ndarray, "edges"]:
    """Split the levels again and again where that makes a histogram most likely."""
    total = np.concatenate([[0], np.cumsum(counts)]).astype(float)

    def log_likelihood(first: np.ndarray | int, last: np.ndarray | int) -> np.ndarray:
        number = total[last] - total[first]
        return number * np.log(np.where(number > 0, number, 1) / (np.asarray(last) - first))

    edges = [0, len(counts)]
    while len(edges) <= min(bins, len(counts)):
        gain, place = 1e-3, 0
        for first, last in itertools.pairwise(edges):
            inner = np.arange(first + 1, last)
            gains = log_likelihood(first, inner) + log_likelihood(inner, last) - log_likelihood(first, last)
            if len(inner) and gains.max() > gain:
                gain, place = float(gains.max()), int(inner[gains.argmax()])
        if not place:
            break
        edges = sorted([*edges, place])
    return np.asarray(edges)
