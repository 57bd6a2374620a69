"""Flows of images with one field at one scale, which can be trained by flow matching."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractField, describe_field
from charax.models.flows._continuous import ContinuousFlow
from charax.models.flows._flow import AbstractFlow, FlowResult
from charax.models.flows._pixels import Pixels
from charax.models.flows._traces import AbstractTrace, Hutchinson
from charax.models.matching import FlowMatching
from charax.nn import count_halvings, split_key, squeeze, summarize, unsqueeze
from charax.solve import Solver


class SingleScaleFlow(AbstractFlow):
    """A flow of NHWC images of whole grey levels: their logits, standardized pixel by pixel, and one continuous flow.

    Squares of 2 x 2 pixels are channels of the flow's state where the sides are even. A multi-scale flow has a field
    for every scale and must be trained by likelihood; this one can be matched.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models.flows import SingleScaleFlowDesign
    from charax.models.matching import FlowMatching
    from charax.solve import Solver

    flow = SingleScaleFlowDesign("c-node", width=4, characteristic_dim=2).build((4, 4, 1), key=jax.random.key(0))
    images = jnp.full((3, 4, 4, 1), 255.0)
    assert flow.match(images, FlowMatching(), key=jax.random.key(1)).shape == (3,)
    result = flow.evaluate(images, solver=Solver("midpoint", steps=2), key=jax.random.key(2))
    assert flow.loss(result.log_prob).shape == (3,)  # bits per dimension
    ```
    """

    flow: ContinuousFlow
    pixels: Pixels
    shape: tuple[int, ...] = eqx.field(static=True)
    mean: tuple[float, ...] = eqx.field(static=True)
    std: tuple[float, ...] = eqx.field(static=True)

    def __init__(
        self,
        field: AbstractField,
        shape: tuple[int, ...],
        *,
        pixels: Pixels | None = None,
        mean: tuple[float, ...] = (),
        std: tuple[float, ...] = (),
    ):
        """Check and store the parts of the flow.

        Args:
            field: The vector field of the standardized logits, in the shape of `state_shape`.
            shape: The shape of one image: height, width, channels.
            pixels: How grey levels become continuous; 256 levels by default.
            mean: The mean logit of every pixel, row by row; 0 if left out.
            std: The standard deviation of the logit of every pixel; 1 if left out.

        Raises:
            ValueError: If the shape is not that of an image, or there is not one mean and one positive standard
                deviation per pixel.
        """
        size = math.prod(shape)
        for name, values in (("mean", mean), ("std", std)):
            if values and len(values) != size:
                raise ValueError(f"{name} must have {size} numbers, one per pixel and channel, got {len(values)}")
        if not all(value > 0 for value in std):
            raise ValueError("every std must be above 0")
        self.flow = ContinuousFlow(field, state_shape(shape))
        self.pixels, self.shape = pixels or Pixels(), tuple(shape)
        self.mean, self.std = mean or (0.0,) * size, std or (1.0,) * size

    def __repr__(self) -> str:
        return summarize(self, describe_field(self.flow.field), f"shape {self.shape}")

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
        context: Float[Array, "batch *_"] | None = None,
        with_energies: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> FlowResult:
        """Map images with pixels in (0, 1) to the base distribution.

        Args:
            u: A batch of images.
            solver: How to integrate; `Solver()` by default.
            trace: How to compute the trace; Hutchinson's estimator with one probe by default.
            context: One row per image for a field that reads it, such as one-hot classes.
            with_energies: Whether to integrate the two regularization terms, too.
            key: Random key of an estimated trace.

        Returns:
            The points in the base distribution with the log-densities of `u`.
        """
        state, log_det = self._standardize(u)
        result = self.flow.forward(
            state,
            solver=solver,
            trace=trace or Hutchinson(),
            context=context,
            with_energies=with_energies,
            key=key,
        )
        return eqx.tree_at(
            lambda each: (each.log_det, each.log_prob), result, (result.log_det + log_det, result.log_prob + log_det)
        )

    def log_prob(
        self,
        u: Float[Array, "batch height width channels"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        key: PRNGKeyArray,
    ) -> Float[Array, "batch"]:
        """Compute the log-density of images of grey levels, dequantised to [0, 1); `loss` converts it to bits.

        Args:
            u: A batch of images of whole grey levels.
            solver: As in `forward`.
            trace: As in `forward`.
            context: As in `forward`.
            key: Random key of dequantisation and of an estimated trace.

        Returns:
            The log-density of every image.
        """
        return self.evaluate(u, solver=solver, trace=trace, context=context, key=key).log_prob

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
        if key is None:
            raise ValueError("a flow of images dequantises, so it needs key=…")
        noise_key, key = split_key(key)
        x = self.pixels.dequantise(u, key=noise_key)
        return self.forward(x, solver=solver, trace=trace, context=context, with_energies=with_energies, key=key)

    def match(
        self,
        u: Float[Array, "batch *state"],
        matching: FlowMatching,
        *,
        source: Float[Array, "batch *state"] | None = None,
        context: Float[Array, "batch *_"] | None = None,
        key: PRNGKeyArray,
    ) -> Float[Array, "batch"]:
        noise_key, key = split_key(key)
        state, _ = self._standardize(self.pixels.dequantise(u, key=noise_key))
        return self.flow.match(state, matching, source=source, context=context, key=key)

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
        state = self.flow.sample(n, key=key, solver=solver, context=context, temperature=temperature, guidance=guidance)
        return self.pixels.quantise(self.to_pixels(state))

    def to_pixels(self, state: Float[Array, "batch *state"]) -> Float[Array, "batch height width channels"]:
        """Show states of the flow as images.

        Args:
            state: Standardized logits, as the flow has them.

        Returns:
            Images with pixels in [0, 1].
        """
        return self.pixels.expit(self._restore(state))

    @property
    def noise_shape(self) -> tuple[int, ...]:
        return self.flow.shape

    def generate(
        self,
        noise: Float[Array, "batch *noise"],
        *,
        solver: Solver | None = None,
        context: Float[Array, "batch *_"] | None = None,
    ) -> Float[Array, "batch *state"]:
        state = self.flow.generate(noise, solver=solver, context=context)
        return self.pixels.quantise(self.pixels.expit(self._restore(state)))

    def _standardize(self, x: Array) -> tuple[Array, Array]:
        """The flow's state, and the log-determinant of the map to it."""
        if x.shape[1:] != self.shape:
            raise ValueError(f"this flow is for images of shape {self.shape}, and a batch of them; got {x.shape}")
        logits, log_det = self.pixels.logit(x)
        mean, std = (jnp.asarray(each, x.dtype).reshape(self.shape) for each in (self.mean, self.std))
        state = (logits - mean) / std
        return squeeze(state) if self._is_squeezed else state, log_det - sum(map(math.log, self.std))

    def _restore(self, state: Array) -> Array:
        """The logits of a state."""
        mean, std = (jnp.asarray(each, state.dtype).reshape(self.shape) for each in (self.mean, self.std))
        return mean + std * (unsqueeze(state) if self._is_squeezed else state)

    @property
    def _is_squeezed(self) -> bool:
        return self.flow.shape != self.shape


def state_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """The shape of the state of a `SingleScaleFlow`.

    ```python
    from charax.models.flows import state_shape

    assert state_shape((28, 28, 1)) == (14, 14, 4) and state_shape((7, 7, 3)) == (7, 7, 3)
    ```

    Args:
        shape: The shape of an image: height, width, channels.

    Returns:
        The shape after a squeeze, if both sides are even and at least 4.

    Raises:
        ValueError: If the shape is not that of an image.
    """
    if len(shape) != 3 or min(shape) < 1:
        raise ValueError(f"this flow is for images [height, width, channels], got the shape {tuple(shape)}")
    height, width, channels = shape
    return (height // 2, width // 2, 4 * channels) if count_halvings(shape, 1) else (height, width, channels)
