"""3x3 convolutions with fewer multiplications: Winograd's F(2x2, 3x3).

Tiles of 4x4 pixels, two apart, give 2x2 pixels of the output each. With the small matrices B, G and A of Lavin and
Gray (2016), which are written out below as sums,

    output tile = Aᵀ [ (G kernel Gᵀ) · (Bᵀ tile B) ] A,

where · multiplies over the channels: 16 matrix products for all tiles at once, with 4 multiplications for each output
where the definition has 9. The weight gradient is the transpose of the same, with the image's tiles as they are.
Rounding is that of an ordinary convolution: the entries of the three matrices are 0, ±1 and ±1/2.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def is_worthwhile(pixels: int | Any, channels_in: int, channels_out: int, rows: int, columns: int) -> bool:
    """Whether the products are large enough to pay for the sums around them; not if their number is symbolic."""
    wide = (rows, columns) == (3, 3) and min(channels_in, channels_out) >= 32
    return wide and isinstance(pixels, int) and pixels >= 16_384


def convolve_tiles(
    image: Float[Array, "batch height width channels_in"], kernel: Float[Array, "3 3 channels_in channels_out"]
) -> Float[Array, "batch height width channels_out"]:
    """A same-padded, stride-one convolution."""
    batch, height, width, _ = image.shape
    tiles = _both_axes(_cut(image), _input_sums)
    kernels = _both_axes([[kernel[i, j] for j in range(3)] for i in range(3)], _kernel_sums)
    products = [[tile @ kernel for tile, kernel in zip(*row, strict=True)] for row in zip(tiles, kernels, strict=True)]
    pixels = _both_axes(products, _output_sums)
    out = jnp.stack([jnp.stack(row, axis=3) for row in pixels], axis=2)
    return out.reshape(batch, out.shape[1] * 2, out.shape[3] * 2, -1)[:, :height, :width]


def correlate_tiles(
    image: Float[Array, "batch height width channels_in"], cotangent: Float[Array, "batch height width channels_out"]
) -> Float[Array, "3 3 channels_in channels_out"]:
    """The gradient of `convolve_tiles` with respect to the kernel."""
    even = _make_even(cotangent)
    pixels = [[even[:, i::2, j::2] for j in range(2)] for i in range(2)]
    tiles, spread = _both_axes(_cut(image), _input_sums), _both_axes(pixels, _output_sums_transposed)
    products = [
        [_flat(tile).T @ _flat(one) for tile, one in zip(*row, strict=True)] for row in zip(tiles, spread, strict=True)
    ]
    return jnp.stack([jnp.stack(row) for row in _both_axes(products, _kernel_sums_transposed)])


Grid = list[list[Array]]


def _flat(tiles: Array) -> Array:
    return tiles.reshape(-1, tiles.shape[-1])


def _cut(image: Array) -> Grid:
    """Pixel (i, j) of every tile, for all 4 x 4 pixels."""
    even = _make_even(image)
    height, width = even.shape[1:3]
    padded = jnp.pad(even, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return [[padded[:, i : i + height - 1 : 2, j : j + width - 1 : 2] for j in range(4)] for i in range(4)]


def _make_even(image: Array) -> Array:
    # XLA would fuse whatever makes the image into each of the sixteen sums, and compute it that often.
    height, width = image.shape[1:3]
    return jnp.pad(lax.optimization_barrier(image), ((0, 0), (0, height % 2), (0, width % 2), (0, 0)))


def _both_axes(grid: Grid, sums) -> Grid:
    """Apply a small matrix from the left and its transpose from the right."""
    columns = [sums(column) for column in zip(*grid, strict=True)]
    return [sums(row) for row in zip(*columns, strict=True)]


def _input_sums(d: Sequence[Array]) -> list[Array]:
    """Bᵀ."""
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def _kernel_sums(g: Sequence[Array]) -> list[Array]:
    """G."""
    outer, middle = (g[0] + g[2]) / 2, g[1] / 2
    return [g[0], outer + middle, outer - middle, g[2]]


def _kernel_sums_transposed(m: Sequence[Array]) -> list[Array]:
    """Gᵀ."""
    outer, middle = (m[1] + m[2]) / 2, (m[1] - m[2]) / 2
    return [m[0] + outer, middle, outer + m[3]]


def _output_sums(m: Sequence[Array]) -> list[Array]:
    """Aᵀ."""
    return [m[0] + m[1] + m[2], m[1] - m[2] - m[3]]


def _output_sums_transposed(y: Sequence[Array]) -> list[Array]:
    """A."""
    return [y[0], y[0] + y[1], y[0] - y[1], -y[1]]
