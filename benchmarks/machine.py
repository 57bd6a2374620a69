"""Row 7: how far the image field is from what the machine can do."""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp

from benchmarks.rows import Row
from benchmarks.timing import interleaved
from charax.models import paper_classifier

SIDE = 2_048


def row7() -> Iterator[Row]:
    """GFLOP/s of the image field, forward and with its gradient, as a fraction of a large matrix product's."""
    matrix = jax.random.normal(jax.random.key(0), (SIDE, SIDE))
    for dataset, method, batch, shape, width, channels, targets in (
        ("mnist", "c-node", 256, (28, 28, 1), 64, 1, (0.55, 0.50)),
        ("cifar10", "il-node+c-node", 64, (32, 32, 42), 42, 42, (0.55, 0.50)),
    ):
        jacobian = paper_classifier(dataset, method, key=jax.random.key(0)).ode.field.jacobian  # pyright: ignore[reportAttributeAccessIssue]
        params, static = eqx.partition(jacobian, eqx.is_inexact_array)
        k = jacobian.characteristic_dim
        u = jax.random.normal(jax.random.key(1), (batch, *shape))
        a = jax.random.normal(jax.random.key(2), (batch, k))
        product = lambda params, u, static=static, a=a: eqx.combine(params, static).product(None, u, a)
        forward = jax.jit(product)
        both = jax.jit(jax.value_and_grad(lambda params, u, f=product: jnp.sum(f(params, u) ** 2), argnums=(0, 1)))
        multiply = jax.jit(jnp.matmul)
        first = channels * width * (1 if dataset == "mnist" else 9)
        flop = 2 * k * batch * shape[0] * shape[1] * (first + 9 * width * width + width * channels)
        times = interleaved(
            {
                "matrix": lambda f=multiply: f(matrix, matrix),
                "forward": lambda f=forward, params=params, u=u: f(params, u),
                "gradient": lambda f=both, params=params, u=u: f(params, u),
            },
            repetitions=7,
        )
        peak = 2 * SIDE**3 / times["matrix"]["median"]
        for name, work, target in (("forward", flop, targets[0]), ("gradient", 3 * flop, targets[1])):
            seconds = times[name]["median"]
            yield Row(
                row=7,
                case=f"{dataset} {method}, batch {batch}, field {name}",
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
