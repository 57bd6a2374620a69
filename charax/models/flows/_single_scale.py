"""Flows of images with one field at one scale, which can be trained by flow matching."""

import math

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractField, describe_field
from charax.models.flows._continuous import ContinuousFlow
from charax.models.flows._flow import AbstractFlow, FlowResult
from charax.models.flows._pixel_scaling import AbstractPixelScaling, StandardizedLogits
from charax.models.flows._pixels import Pixels
from charax.models.flows._traces import AbstractTrace, Hutchinson
from charax.models.matching import FlowMatching
from charax.nn import count_halvings, split_key, squeeze, summarize, unsqueeze
from charax.solve import Solver


class SingleScaleFlow(AbstractFlow):
    """A flow of NHWC images of whole grey levels: a map of every pixel by itself, and one continuous flow.

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
    scaling: AbstractPixelScaling
    shape: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        field: AbstractField,
        shape: tuple[int, ...],
        *,
        pixels: Pixels | None = None,
        scaling: AbstractPixelScaling | None = None,
    ):
        """Check and store the parts of the flow.

        Args:
            field: The vector field of the scaled pixels, in the shape of `state_shape`.
            shape: The shape of one image: height, width, channels.
            pixels: How grey levels become continuous; 256 levels by default.
            scaling: How they become the state of the flow; their logits by default.

        Raises:
            ValueError: If the shape is not that of an image.
        """
        self.flow = ContinuousFlow(field, state_shape(shape))
        self.pixels, self.shape = pixels or Pixels(), tuple(shape)
        self.scaling = scaling or StandardizedLogits(shape, self.pixels)

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
        state, log_det = self.scale_pixels(u)
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
        state, _ = self.scale_pixels(self.pixels.dequantise(u, key=noise_key))
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
            state: Scaled pixels, as the flow has them.

        Returns:
            Images with pixels in [0, 1].
        """
        return self.scaling.inverse(unsqueeze(state) if self._is_squeezed else state)

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
        return self.pixels.quantise(self.to_pixels(state))

    def scale_pixels(
        self, x: Float[Array, "batch height width channels"]
    ) -> tuple[Float[Array, "batch *state"], Float[Array, "batch"]]:
        """Invert `to_pixels`.

        Args:
            x: Images with pixels in [0, 1].

        Returns:
            The states of the flow, and the log-determinant of the map to them.
        """
        if x.shape[1:] != self.shape:
            raise ValueError(f"this flow is for images of shape {self.shape}, and a batch of them; got {x.shape}")
        state, log_det = self.scaling.forward(x)
        return squeeze(state) if self._is_squeezed else state, log_det

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
