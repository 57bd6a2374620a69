"""Row 7: how far the image field is from what the machine can do."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.rows import Row
from benchmarks.timing import interleaved
from charax.models import paper_classifier
from charax.nn import convolve

SIDE = 2_048


class FieldSize(NamedTuple):
    """The Jacobian networks of one of the paper's classifiers, and what is put into them."""

    method: str
    batch: int
    shape: tuple[int, int, int]
    width: int
    first: int
    """Pixels that the first layer reads."""


FIELDS = {
    "mnist": FieldSize("c-node", 256, (28, 28, 1), 64, 1),
    "cifar10": FieldSize("il-node+c-node", 64, (32, 32, 42), 42, 9),
}


class FieldSide(NamedTuple):
    """J · a of an image field, alone and with its gradient, and the floating-point operations of J · a."""

    forward: Callable[[], Any]
    gradient: Callable[[], Any]
    flop: int

    @classmethod
    def make(cls, dataset: str) -> "FieldSide":
        """Random states and velocities."""
        size = FIELDS[dataset]
        jacobian = paper_classifier(dataset, size.method, key=jax.random.key(0)).ode.field.jacobian  # pyright: ignore[reportAttributeAccessIssue]
        params, static = eqx.partition(jacobian, eqx.is_inexact_array)
        k, (height, width, channels) = jacobian.characteristic_dim, size.shape
        u = jax.random.normal(jax.random.key(1), (size.batch, *size.shape))
        a = jax.random.normal(jax.random.key(2), (size.batch, k))
        product = lambda params, u: eqx.combine(params, static).product(None, u, a)
        forward = jax.jit(product)
        both = jax.jit(jax.value_and_grad(lambda params, u: jnp.sum(product(params, u) ** 2), argnums=(0, 1)))
        weights = size.first * channels * size.width + 9 * size.width**2 + size.width * channels
        return cls(lambda: forward(params, u), lambda: both(params, u), 2 * k * size.batch * height * width * weights)


def row7() -> Iterator[Row]:
    """GFLOP/s of the image field, its gradient and its convolution, as fractions of a large matrix product's.

    Operations are those of the definition, also where Winograd's sums need fewer.
    """
    matrix = jax.random.normal(jax.random.key(0), (SIDE, SIDE))
    multiply, ours = jax.jit(jnp.matmul), jax.jit(convolve)
    layout = ("NHWC", "HWIO", "NHWC")
    theirs = jax.jit(lambda u, kernel: lax.conv_general_dilated(u, kernel, (1, 1), "SAME", dimension_numbers=layout))
    for dataset, size in FIELDS.items():
        side = FieldSide.make(dataset)
        u = jax.random.normal(jax.random.key(3), (size.batch, *size.shape[:2], size.width))
        kernel = jax.random.normal(jax.random.key(4), (3, 3, size.width, size.width))
        times = interleaved(
            {
                "matrix": lambda: multiply(matrix, matrix),
                "field forward": side.forward,
                "field gradient": side.gradient,
                "convolution, ours": lambda u=u, kernel=kernel: ours(u, kernel),
                "convolution, XLA's": lambda u=u, kernel=kernel: theirs(u, kernel),
            },
            repetitions=9,
        )
        peak = 2 * SIDE**3 / times["matrix"]["median"]
        convolution = 2 * u.size * 9 * size.width
        for name, work, target in (
            ("field forward", side.flop, 0.55),
            ("field gradient", 3 * side.flop, 0.50),
            ("convolution, ours", convolution, None),
            ("convolution, XLA's", convolution, None),
        ):
            seconds = times[name]["median"]
            yield Row(
                row=7,
                case=f"{dataset} {size.method}, batch {size.batch}, {name}",
                peer=f"float32 matrix product of {SIDE} x {SIDE}",
                ours_seconds=seconds,
                peer_seconds=None,
                ratio=work / seconds / peak,
                nfe_ours=1,
                nfe_peer=None,
                target=target,
                spread={"ours": times[name], "peer": times["matrix"]},
                extra={"gflops": work / seconds / 1e9, "gflops_peak": peak / 1e9},
            )
