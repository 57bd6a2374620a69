"""Densities of images: flows at several scales, with half of what is left factored out at each."""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from charax.fields import AbstractField
from charax.models.flows._continuous import Carried, ContinuousFlow, normal_log_prob
from charax.models.flows._density import AbstractDensity, Assessed, check_number, draw_samples
from charax.models.flows._pixels import Pixels, squeeze, unsqueeze
from charax.models.flows._traces import AbstractTrace, Hutchinson
from charax.solve import Solver

Shape = tuple[int, int, int]


class Scale(eqx.Module):
    """Flows before and after the squeeze. The last scale has none after."""

    before: tuple[ContinuousFlow, ...]
    after: tuple[ContinuousFlow, ...]


class Passed(NamedTuple):
    """A batch at the other end of all flows."""

    u: Float[Array, "batch *state"]
    """NaN where a solve failed."""
    log_det: Float[Array, "batch"]
    kinetic: Float[Array, "batch"] | None
    jacobian: Float[Array, "batch"] | None
    outcome: Int[Array, "*batch"]
    """The first that was not a success."""
    nfe: Int[Array, "*batch"] | None
    """Evaluations of all fields."""


class MultiScaleFlow(AbstractDensity):
    """A density of NHWC images of whole grey levels, in the layout of Real NVP and FFJORD.

    At each scale but the last: `blocks` flows, a squeeze (2 x 2 pixels to channels), `blocks` flows, and half of the
    channels go to the base distribution; at the last, `blocks` flows. There is a scale for every halving of a height
    of at least 4. `make_field(shape, key)` makes the field of each flow; their end times are learned.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.fields import PlainField
    from charax.models.flows import MultiScaleFlow
    from charax.nn import Conv
    from charax.solve import Solver

    make_field = lambda shape, key: PlainField(Conv(shape[-1], shape[-1], key=key), reads=("u",))
    flow = MultiScaleFlow(make_field, (4, 4, 1), key=jax.random.key(0))
    images = jnp.full((3, 4, 4, 1), 255.0)
    log_prob = flow.log_prob(images, solver=Solver("midpoint", steps=4), key=jax.random.key(1))
    assert flow.score(log_prob).shape == (3,)  # bits per dimension
    ```
    """

    scales: tuple[Scale, ...]
    pixels: Pixels
    shape: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        make_field: Callable[[Shape, PRNGKeyArray], AbstractField],
        shape: tuple[int, ...],
        *,
        blocks: int = 1,
        pixels: Pixels | None = None,
        end_time: float = 1.0,
        key: PRNGKeyArray,
    ):
        if blocks < 1:
            raise ValueError(f"blocks must be at least 1, got {blocks}")

        def flows(shape: Shape, key: PRNGKeyArray) -> tuple[ContinuousFlow, ...]:
            keys = jax.random.split(key, blocks)
            return tuple(
                ContinuousFlow(make_field(shape, key), shape, end_time=end_time, learn_time=True) for key in keys
            )

        scales: list[Scale] = []
        for before, after in plan_scales(shape):
            key, before_key, after_key = jax.random.split(key, 3)
            scales.append(Scale(flows(before, before_key), () if after is None else flows(after, after_key)))
        self.scales, self.pixels, self.shape = tuple(scales), pixels or Pixels(), tuple(shape)

    @property
    def size(self) -> int:
        """Numbers in an image."""
        return math.prod(self.shape)

    def forward(
        self,
        x: Float[Array, "batch height width channels"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        energies: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> Passed:
        """Carry images with pixels in (0, 1) to the base distribution, `[batch, size]`.

        `trace` is Hutchinson's with one probe if left out, drawn anew for every flow.
        """
        if x.shape[1:] != self.shape:
            raise ValueError(f"this flow is for images of shape {self.shape}, and a batch of them; got {x.shape}")
        u, log_det = self.pixels.logit(x)
        run = _Passage(solver, trace, energies, key)
        parts: list[Array] = []
        for scale in self.scales:
            u = run.forward(scale.before, u)
            if scale.after:
                u = run.forward(scale.after, squeeze(u))
                u, out = jnp.split(u, 2, axis=-1)
                parts.append(out)
        parts.append(u)
        flat = jnp.concatenate([part.reshape(len(x), -1) for part in parts], axis=1)
        return run.result(flat, log_det)

    def inverse(
        self,
        z: Float[Array, "batch size"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        key: PRNGKeyArray | None = None,
    ) -> Passed:
        """Carry points of the base distribution to images with pixels in (0, 1)."""
        run = _Passage(solver, trace, False, key)
        x = self.pixels.expit(self._lead_back(z, run.inverse))
        return run.result(x, -self.pixels.logit(x)[1])

    def _lead_back(
        self, z: Float[Array, "batch size"], carry: Callable[[tuple[ContinuousFlow, ...], Array], Array]
    ) -> Float[Array, "batch height width channels"]:
        """From one end to the other, with `carry` for the flows in between."""
        shapes = plan_scales(self.shape)
        parts: list[Array] = []
        for shape in [(*after[:2], after[2] // 2) for _, after in shapes if after is not None]:
            size = math.prod(shape)
            parts.append(z[:, :size].reshape(-1, *shape))
            z = z[:, size:]
        u = z.reshape(-1, *shapes[-1][0])
        for scale in reversed(self.scales):
            if scale.after:
                u = unsqueeze(carry(scale.after, jnp.concatenate([u, parts.pop()], axis=-1)))
            u = carry(scale.before, u)
        return u

    def log_prob(
        self,
        images: Float[Array, "batch height width channels"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        key: PRNGKeyArray,
    ) -> Float[Array, "batch"]:
        """The log-density of dequantised images in [0, 1), as `key` dequantises them; `score` makes bits of it."""
        return self.assess(images, solver=solver, trace=trace, key=key).log_prob

    def assess(
        self,
        u: Float[Array, "batch *state"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        energies: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> Assessed:
        if key is None or context is not None:
            raise ValueError("a multi-scale flow dequantises, so it needs key=…, and it takes no context")
        noise_key, key = jax.random.split(key)
        x = self.pixels.dequantise(u, key=noise_key)
        passed = self.forward(x, solver=solver, trace=trace, energies=energies, key=key)
        log_prob = normal_log_prob(passed.u) + passed.log_det
        return Assessed(log_prob, passed.kinetic, passed.jacobian, passed.outcome, passed.nfe)

    def score(self, log_prob: Float[Array, "batch"]) -> Float[Array, "batch"]:
        return self.pixels.bits_per_dim(log_prob, self.size)

    def sample(
        self,
        n: int,
        *,
        key: PRNGKeyArray,
        solver: Solver | None = None,
        context: Float[Array, "batch *_"] | None = None,
        temperature: float = 1.0,
    ) -> Float[Array, "batch *state"]:
        if context is not None:
            raise ValueError("a multi-scale flow takes no context: leave it out")
        z = temperature * jax.random.normal(key, (check_number(n, temperature), self.size))
        return self.pixels.quantise(draw_samples(lambda solver: _carry_back(self, z, solver), n, solver or Solver()))


class _Passage:
    """One way through all flows: what it adds up on the way."""

    def __init__(self, solver: Solver | None, trace: AbstractTrace | None, energies: bool, key: PRNGKeyArray | None):
        self.solver, self.trace, self.energies, self.key = solver, trace or Hutchinson(), energies, key
        self.legs: list[tuple[Carried, float]] = []

    def forward(self, flows: tuple[ContinuousFlow, ...], u: Array) -> Array:
        for flow in flows:
            u = self._note(flow.forward(u, **self._how()))
        return u

    def inverse(self, flows: tuple[ContinuousFlow, ...], u: Array) -> Array:
        for flow in reversed(flows):
            u = self._note(flow.inverse(u, **self._how()))
        return u

    def _how(self) -> dict:
        key = None
        if self.key is not None:
            self.key, key = jax.random.split(self.key)
        return {"solver": self.solver, "trace": self.trace, "energies": self.energies, "key": key}

    def _note(self, carried: Carried) -> Array:
        self.legs.append((carried, carried.u[0].size))
        return carried.u

    def result(self, u: Array, log_det: Array) -> Passed:
        legs = [leg for leg, _ in self.legs]
        nfe = [leg.stats.nfe for leg in legs if leg.stats.nfe is not None]
        return Passed(
            u,
            sum((leg.log_det for leg in legs), log_det),
            self._mean("kinetic", u) if self.energies else None,
            self._mean("jacobian", u) if self.energies else None,
            _first_failure([leg.outcome for leg in legs]),
            sum(nfe[1:], nfe[0]) if len(nfe) == len(legs) else None,
        )

    def _mean(self, name: str, u: Array) -> Array:
        """Per dimension of the image, where later flows carry only a part of it."""
        return sum((getattr(leg, name) * size for leg, size in self.legs), jnp.zeros(u.shape[0], u.dtype)) / u[0].size


def plan_scales(shape: tuple[int, ...]) -> list[tuple[Shape, Shape | None]]:
    """The shapes before and after the squeeze of every scale; the last has no squeeze.

    ```python
    from charax.models.flows import plan_scales

    assert plan_scales((28, 28, 1)) == [((28, 28, 1), (14, 14, 4)), ((14, 14, 2), (7, 7, 8)), ((7, 7, 4), None)]
    ```
    """
    if len(shape) != 3 or min(shape) < 1:
        raise ValueError(f"a multi-scale flow is for images [height, width, channels], got the shape {tuple(shape)}")
    height, width, channels = shape
    scales: list[tuple[Shape, Shape | None]] = []
    while min(height, width) >= 8:
        if height % 2 or width % 2:
            raise ValueError(
                f"{height}x{width} pixels cannot be squeezed to half the side: crop or pad the images of "
                f"{shape[0]}x{shape[1]} to a side that halves evenly, such as 8, 14, 28 or 32"
            )
        after = (height // 2, width // 2, 4 * channels)
        scales.append(((height, width, channels), after))
        height, width, channels = height // 2, width // 2, 2 * channels
    return [*scales, ((height, width, channels), None)]


@eqx.filter_jit
def _carry_back(flow: MultiScaleFlow, z: Array, solver: Solver) -> tuple[Array, Array]:
    """Images in (0, 1), without the traces, which samples do not need."""
    outcomes: list[Array] = []

    def carry(flows: tuple[ContinuousFlow, ...], u: Array) -> Array:
        for one in reversed(flows):
            u, outcome = one.carry_back(u, solver)
            outcomes.append(outcome)
        return u

    x = flow.pixels.expit(flow._lead_back(z, carry))
    return x, _first_failure(outcomes)


def _first_failure(outcomes: list[Array]) -> Array:
    first = outcomes[0]
    for outcome in outcomes[1:]:
        first = jnp.where(first == 0, outcome, first)
    return first
