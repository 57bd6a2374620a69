"""What the core costs: against the same solve written by hand on diffrax, and against XLA's own convolution."""

from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.timing import interleaved
from charax.fields import PlainField
from charax.nn import convolve, mlp
from charax.solve import Solver


def overhead(*, repetitions: int = 31) -> dict[str, Any]:
    """Forward and gradient of a small field, dopri5 at 1e-5: through charax and by hand on diffrax."""
    field = PlainField(mlp([33, 64, 64, 32], key=jax.random.key(0)))
    u0 = jax.random.normal(jax.random.key(1), (200, 32))
    parameters, static = eqx.partition(field, eqx.is_inexact_array)

    def through_charax(parameters, u0):
        solver = Solver("dopri5", rtol=1e-5, atol=1e-5)
        return jnp.sum(solver.solve(eqx.combine(parameters, static), u0).u ** 2)

    def by_hand(parameters, u0):
        network = eqx.combine(parameters, static).network

        def right_hand_side(s, u, _):
            return network(jnp.concatenate([jnp.broadcast_to(s, (u.shape[0], 1)), u], axis=-1))

        solution = dfx.diffeqsolve(
            dfx.ODETerm(right_hand_side),
            dfx.Dopri5(),
            0.0,
            1.0,
            0.01,
            u0,
            stepsize_controller=dfx.PIDController(1e-5, 1e-5),
            adjoint=dfx.RecursiveCheckpointAdjoint(),
            max_steps=4096,
            throw=False,
        )
        return jnp.sum(solution.ys[-1] ** 2)  # pyright: ignore[reportOptionalSubscript]

    rows: dict[str, Any] = {}
    for what, transform in {"forward": lambda f: f, "gradient": jax.grad}.items():
        ours, theirs = (jax.jit(transform(loss)) for loss in (through_charax, by_hand))
        times = interleaved(
            {"ours": lambda ours=ours: ours(parameters, u0), "diffrax": lambda theirs=theirs: theirs(parameters, u0)},
            repetitions=repetitions,
            inner=10,
        )
        rows[what] = times | {"ratio": times["ours"]["median"] / times["diffrax"]["median"], "at_most": 1.05}
    return {"case": "200 samples of 32 features, 33-64-64-32 tanh, dopri5 1e-5", **rows}


def convolution(*, repetitions: int = 3) -> dict[str, Any]:
    """Gradient of ten Euler steps in a scan: our convolution and `lax.conv_general_dilated`."""
    channels, batch, side = 64, 64, 28
    keys = jax.random.split(jax.random.key(0), 4)
    parameters = (
        jax.random.normal(keys[0], (1, channels)),
        jax.random.normal(keys[1], (3, 3, channels, channels)) / 24,
        jax.random.normal(keys[2], (channels, 1)) / 8,
    )
    images = jax.random.normal(keys[3], (batch, side, side, 1))

    def plain(image, kernel):
        return lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def loss(parameters, convolution):
        first, kernel, last = parameters
        step = lambda u, _: (u + 0.1 * jax.nn.relu(convolution(jax.nn.relu(u @ first), kernel)) @ last, None)
        return jnp.sum(lax.scan(step, images, length=10)[0] ** 2)

    gradients = {
        name: jax.jit(jax.grad(lambda parameters, convolution=convolution: loss(parameters, convolution)))
        for name, convolution in {"ours": convolve, "lax": plain}.items()
    }
    times = interleaved({name: lambda g=g: g(parameters) for name, g in gradients.items()}, repetitions=repetitions)
    return {
        "case": "64 images of 28x28x1, 64 channels, 3x3, ten Euler steps in a scan, gradient",
        **times,
        "ratio": times["lax"]["median"] / times["ours"]["median"],
        "at_least": 20,
    }
