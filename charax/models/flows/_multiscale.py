"""Flows of images at several scales, with half of the channels factored out at each."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractField
from charax.models.flows._continuous import ContinuousFlow, normal_log_prob, solve_inverse
from charax.models.flows._flow import AbstractFlow, FlowResult, check_sampling, sample_with_retry
from charax.models.flows._pixels import Pixels
from charax.models.flows._scales import Shape, plan_scales
from charax.models.flows._traces import AbstractTrace, Hutchinson
from charax.models.matching import FlowMatching
from charax.nn import split_key, squeeze, summarize, unsqueeze
from charax.nn._parameters import count
from charax.solve import Solver


class Scale(eqx.Module):
    """The flows of one scale, before and after the squeeze. The last scale has none after it."""

    before: tuple[ContinuousFlow, ...]
    after: tuple[ContinuousFlow, ...]


class MultiScaleFlow(AbstractFlow):
    """A flow of NHWC images of whole grey levels, in the multi-scale architecture of Real NVP and FFJORD.

    At each scale but the last: `blocks` flows, a squeeze (2 x 2 pixels to channels), `blocks` flows, and half of the
    channels are factored out; at the last, `blocks` flows. There is a scale for every halving of a height of at least
    4. The end times of the flows are learned.

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
    assert flow.loss(log_prob).shape == (3,)  # bits per dimension
    ```
    """

    scales: tuple[Scale, ...]
    pixels: Pixels
    shape: tuple[int, ...] = eqx.field(static=True)

    def __repr__(self) -> str:
        return summarize(self, count(len(self.scales), "scale"), f"shape {self.shape}")

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
        """Build the flows of all scales.

        Args:
            make_field: Builds the field of a flow from the shape of its images and a random key.
            shape: The shape of one image: height, width, channels.
            blocks: The number of flows in a row at each scale, before and after the squeeze.
            pixels: How grey levels become continuous; 256 levels by default.
            end_time: The initial end time of every flow.
            key: Random key of the initial weights.

        Raises:
            ValueError: If the images cannot be squeezed, or `blocks` is below 1.
        """
        if blocks < 1:
            raise ValueError(f"blocks must be at least 1, got {blocks}")

        def flows(shape: Shape, key: PRNGKeyArray) -> tuple[ContinuousFlow, ...]:
            keys = split_key(key, blocks)
            return tuple(
                ContinuousFlow(make_field(shape, key), shape, end_time=end_time, learn_time=True) for key in keys
            )

        scales: list[Scale] = []
        for before, after in plan_scales(shape):
            key, before_key, after_key = split_key(key, 3)
            scales.append(Scale(flows(before, before_key), () if after is None else flows(after, after_key)))
        self.scales, self.pixels, self.shape = tuple(scales), pixels or Pixels(), tuple(shape)

    @property
    def size(self) -> int:
        """The number of dimensions of an image."""
        return math.prod(self.shape)

    def forward(
        self,
        u: Float[Array, "batch height width channels"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        with_energies: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> FlowResult:
        """Map images with pixels in (0, 1) to the base distribution, `[batch, size]`.

        Args:
            u: A batch of images.
            solver: How to integrate; `Solver()` by default.
            trace: How to compute the traces; Hutchinson's estimator with one probe per flow by default.
            with_energies: Whether to integrate the two regularization terms, too.
            key: Random key of an estimated trace.

        Returns:
            The points in the base distribution with the log-densities of `u`.

        Raises:
            ValueError: If the images have another shape than the flow's.
        """
        if u.shape[1:] != self.shape:
            raise ValueError(f"this flow is for images of shape {self.shape}, and a batch of them; got {u.shape}")
        u, log_det = self.pixels.logit(u)
        flows = _Composition(solver, trace, with_energies, key)
        z = self._apply_scales(u, flows.forward)
        log_det = flows.log_det(log_det)
        return flows.result(z, log_det, normal_log_prob(z) + log_det)

    def inverse(
        self,
        u: Float[Array, "batch size"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        with_energies: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> FlowResult:
        """Map points of the base distribution to images with pixels in (0, 1).

        Args:
            u: A batch of points of the base distribution, one row per image.
            solver: As in `forward`.
            trace: As in `forward`.
            with_energies: As in `forward`.
            key: As in `forward`.

        Returns:
            The images with their log-densities.
        """
        flows = _Composition(solver, trace, with_energies, key)
        x = self.pixels.expit(self._invert_scales(u, flows.inverse))
        log_det = flows.log_det(-self.pixels.logit(x)[1])
        return flows.result(x, log_det, normal_log_prob(u) - log_det)

    def _apply_scales(
        self,
        u: Float[Array, "batch height width channels"],
        apply: Callable[[tuple[ContinuousFlow, ...], Array], Array],
    ) -> Float[Array, "batch size"]:
        """Map logits through the scales in order, with `apply` for the flows of each."""
        parts: list[Array] = []
        for scale in self.scales:
            u = apply(scale.before, u)
            if scale.after:
                u, factored_out = jnp.split(apply(scale.after, squeeze(u)), 2, axis=-1)
                parts.append(factored_out)
        return jnp.concatenate([part.reshape(u.shape[0], -1) for part in (*parts, u)], axis=1)

    def _invert_scales(
        self, z: Float[Array, "batch size"], invert: Callable[[tuple[ContinuousFlow, ...], Array], Array]
    ) -> Float[Array, "batch height width channels"]:
        """Undo the scales in reverse order, with `invert` for the flows of each."""
        shapes = plan_scales(self.shape)
        parts: list[Array] = []
        for shape in [(*after[:2], after[2] // 2) for _, after in shapes if after is not None]:
            size = math.prod(shape)
            parts.append(z[:, :size].reshape(-1, *shape))
            z = z[:, size:]
        u = z.reshape(-1, *shapes[-1][0])
        for scale in reversed(self.scales):
            if scale.after:
                u = unsqueeze(invert(scale.after, jnp.concatenate([u, parts.pop()], axis=-1)))
            u = invert(scale.before, u)
        return u

    def log_prob(
        self,
        u: Float[Array, "batch height width channels"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        key: PRNGKeyArray,
    ) -> Float[Array, "batch"]:
        """Compute the log-density of images of grey levels, dequantised to [0, 1); `loss` converts it to bits.

        Args:
            u: A batch of images of whole grey levels.
            solver: As in `forward`.
            trace: As in `forward`.
            key: Random key of dequantisation and of an estimated trace.

        Returns:
            The log-density of every image.
        """
        return self.evaluate(u, solver=solver, trace=trace, key=key).log_prob

    def evaluate(
        self,
        u: Float[Array, "batch *state"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        with_energies: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> FlowResult:
        if key is None or context is not None:
            raise ValueError("a multi-scale flow dequantises, so it needs key=…, and it takes no context")
        noise_key, key = split_key(key)
        x = self.pixels.dequantise(u, key=noise_key)
        return self.forward(x, solver=solver, trace=trace, with_energies=with_energies, key=key)

    def match(
        self,
        u: Float[Array, "batch *state"],
        matching: FlowMatching,
        *,
        source: Float[Array, "batch *state"] | None = None,
        context: Float[Array, "batch *_"] | None = None,
        key: PRNGKeyArray,
    ) -> Float[Array, "batch"]:
        raise ValueError("a multi-scale flow has one field per scale, so it cannot be matched: train it by likelihood")

    def loss(self, log_prob: Float[Array, "batch"]) -> Float[Array, "batch"]:
        return self.pixels.bits_per_dim(log_prob, self.size)

    def sample(
        self,
        n: int,
        *,
        key: PRNGKeyArray,
        solver: Solver | None = None,
        context: Float[Array, "batch *_"] | None = None,
        temperature: float = 1.0,
        guidance: float = 0.0,
    ) -> Float[Array, "batch *state"]:
        if context is not None or guidance:
            raise ValueError("a multi-scale flow takes no context and no guidance: leave them out")
        z = temperature * jax.random.normal(key, (check_sampling(n, temperature), self.size))
        x = sample_with_retry(lambda solver: _solve_inverse(self, z, solver), n, solver or Solver())
        return self.pixels.quantise(x)

    def to_pixels(
        self, state: Float[Array, "batch height width channels"]
    ) -> Float[Array, "batch height width channels"]:
        """Show states between two flows as images.

        Args:
            state: Logits, as `follow_flow` returns them.

        Returns:
            Images with pixels in [0, 1].
        """
        return self.pixels.expit(state)

    @property
    def noise_shape(self) -> tuple[int, ...]:
        return (self.size,)

    def generate(
        self,
        noise: Float[Array, "batch *noise"],
        *,
        solver: Solver | None = None,
        context: Float[Array, "batch *_"] | None = None,
    ) -> Float[Array, "batch *state"]:
        if context is not None:
            raise ValueError("a multi-scale flow takes no context: leave it out")
        return self.pixels.quantise(_solve_inverse(self, noise, solver or Solver())[0])


class _Composition:
    """Applies flows one after another, each with a random key of its own, and accumulates their results."""

    def __init__(
        self, solver: Solver | None, trace: AbstractTrace | None, with_energies: bool, key: PRNGKeyArray | None
    ):
        self.solver, self.trace, self.with_energies, self.key = solver, trace or Hutchinson(), with_energies, key
        self.results: list[FlowResult] = []

    def forward(self, flows: tuple[ContinuousFlow, ...], u: Array) -> Array:
        for flow in flows:
            u = self._append(flow.forward(u, **self._options()))
        return u

    def inverse(self, flows: tuple[ContinuousFlow, ...], u: Array) -> Array:
        for flow in reversed(flows):
            u = self._append(flow.inverse(u, **self._options()))
        return u

    def _options(self) -> dict:
        key = None
        if self.key is not None:
            self.key, key = split_key(self.key)
        return {"solver": self.solver, "trace": self.trace, "with_energies": self.with_energies, "key": key}

    def _append(self, result: FlowResult) -> Array:
        self.results.append(result)
        return result.u

    def log_det(self, log_det: Array) -> Array:
        """The sum of the log-determinants of the flows and of everything else."""
        return sum((result.log_det for result in self.results), log_det)

    def result(self, u: Array, log_det: Array, log_prob: Array) -> FlowResult:
        nfe = [result.nfe for result in self.results if result.nfe is not None]
        return FlowResult(
            u=u,
            log_det=log_det,
            log_prob=log_prob,
            kinetic=self._mean("kinetic", u) if self.with_energies else None,
            jacobian_norm=self._mean("jacobian_norm", u) if self.with_energies else None,
            outcome=_first_failure([result.outcome for result in self.results]),
            nfe=sum(nfe[1:], nfe[0]) if len(nfe) == len(self.results) else None,
        )

    def _mean(self, name: str, u: Array) -> Array:
        """Per dimension of the image, of which later flows map only a part."""
        energies = (getattr(result, name) * result.u[0].size for result in self.results)
        return sum(energies, jnp.zeros(u.shape[0], u.dtype)) / u[0].size


@eqx.filter_jit
def _solve_inverse(flow: MultiScaleFlow, z: Array, solver: Solver) -> tuple[Array, Array]:
    """Compute images in (0, 1) without the traces, which samples do not need."""
    outcomes: list[Array] = []

    def invert(flows: tuple[ContinuousFlow, ...], u: Array) -> Array:
        for one in reversed(flows):
            u, outcome = solve_inverse(one, u, solver, None)
            outcomes.append(outcome)
        return u

    x = flow.pixels.expit(flow._invert_scales(z, invert))
    return x, _first_failure(outcomes)


def _first_failure(outcomes: list[Array]) -> Array:
    first = outcomes[0]
    for outcome in outcomes[1:]:
        first = jnp.where(first == 0, outcome, first)
    return first
