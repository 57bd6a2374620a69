"""Row 5: how time and memory of a training step grow with batch size, steps, k and image size."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.rows import Row
from benchmarks.timing import interleaved
from charax.models import AbstractArchitecture, find_design, paper_architecture
from charax.plotting import C_NODE, EXACT, save_figure
from charax.solve import Solver


class Step(NamedTuple):
    """A gradient of one batch: what to call, and the bytes that XLA sets aside for it."""

    call: Callable[[], Any]
    bytes: int


def make_step(architecture: AbstractArchitecture, side: int, batch: int, solver: Solver) -> Step:
    """Loss and gradient of a classifier of grey images."""
    model = architecture.build((side, side, 1), 10, key=jax.random.key(0))
    params, static = eqx.partition(model, eqx.is_inexact_array)

    def loss(params, images, labels):
        logits, _ = eqx.combine(params, static)(images, solver=solver)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    images, labels = jnp.ones((batch, side, side, 1)), jnp.zeros(batch, int)
    step = jax.jit(jax.value_and_grad(loss)).lower(params, images, labels).compile()
    memory = step.memory_analysis()
    assert memory is not None
    used = memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes
    return Step(lambda: step(params, images, labels), used)


def _small(side: int) -> AbstractArchitecture:
    # The state is on the pixels themselves, so that the size of the image is the size of the grid.
    return replace(find_design("small", "c-node", (side, side, 1)).architecture, patch=1, pool=4)


def _paper(k: int) -> AbstractArchitecture:
    return replace(paper_architecture("mnist", "c-node"), characteristic_dim=k, jacobian="joint")


ONE_STEP, TWO_STEPS = Solver("euler", steps=1), Solver("euler", steps=2)
AXES: Mapping[str, tuple[tuple[int, ...], Callable[[int], Step]]] = {
    "batch size": ((16, 32, 64, 128, 256), lambda n: make_step(_small(14), 14, n, TWO_STEPS)),
    "Euler steps": ((4, 8, 16, 32, 64, 128), lambda n: make_step(_small(14), 14, 32, Solver("euler", steps=n))),
    "pixels a side": ((8, 16, 32, 64), lambda n: make_step(_small(n), n, 32, TWO_STEPS)),
    "k, joint Jacobian, the paper's MNIST model": (
        (1, 2, 8, 32, 128),
        lambda n: make_step(_paper(n), 28, 32, ONE_STEP),
    ),
}


def exponent(values: tuple[int, ...], measured: list[float]) -> float:
    """The slope of the straight line through the upper half of a log–log plot."""
    half = len(values) // 2
    return float(np.polyfit(np.log(values[half:]), np.log(measured[half:]), 1)[0])


def row5() -> Iterator[Row]:
    """One row an axis; the ratio is the largest to the smallest in time."""
    for axis, (values, make) in AXES.items():
        steps = {value: make(value) for value in values}
        times = interleaved({str(value): step.call for value, step in steps.items()}, repetitions=7)
        seconds = [times[str(value)]["median"] for value in values]
        megabytes = [step.bytes / 2**20 for step in steps.values()]
        yield Row(
            row=5,
            case=f"growth with {axis}, {values[0]} to {values[-1]}",
            peer=None,
            ours_seconds=seconds[-1],
            peer_seconds=None,
            ratio=None,
            nfe_ours=None,
            nfe_peer=None,
            extra={
                "axis": axis,
                "values": list(values),
                "seconds": seconds,
                "megabytes": megabytes,
                "exponent_seconds": exponent(values, seconds),
                "exponent_megabytes": exponent(values, megabytes),
                "times_slower": seconds[-1] / seconds[0],
                "times_larger": megabytes[-1] / megabytes[0],
            },
        )


def plot_growth(rows: list[dict[str, Any]], path: Path) -> Path:
    """Log–log plots of row 5, with the fitted exponents."""
    found = [row["extra"] for row in rows if row["row"] == 5]
    with save_figure(path, width=3.0 * len(found), height=3.5) as figure:
        for axis, extra in zip(np.atleast_1d(figure.subplots(1, len(found))), found, strict=True):
            x = np.array(extra["values"])
            for what, colour in (("seconds", C_NODE), ("megabytes", EXACT)):
                y = np.array(extra[what])
                label = f"{what}, exponent {extra[f'exponent_{what}']:.2f}"
                axis.loglog(x, y / y[0], "o-", markersize=4, color=colour, label=label)
            axis.set_xticks(x, [str(value) for value in x])
            axis.minorticks_off()
            name, *rest = extra["axis"].split(", ")
            axis.set(xlabel=name, title=rest[0] if rest else "", ylabel=f"relative to {x[0]}")
            low, high = axis.get_ylim()
            axis.set_ylim(min(low, 0.5), max(high, 10))  # what hardly grows should look so
            axis.legend(fontsize="small")
        figure.suptitle(
            "Time and memory of a training step as one size grows, relative to the smallest", fontsize="medium"
        )
    return path
