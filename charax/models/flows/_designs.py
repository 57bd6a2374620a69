"""Flows as data: everything that is needed to build them again, except their weights; and the paper's flows."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

from charax.models._names import FlowMethod
from charax.models.flows._continuous import ContinuousFlow
from charax.models.flows._fields import image_flow_field, unet_flow_field, vector_flow_field
from charax.models.flows._flow import AbstractFlow
from charax.models.flows._multiscale import MultiScaleFlow
from charax.models.flows._pixel_scaling import NormalQuantiles, StandardizedLogits, WhitenedPixels
from charax.models.flows._pixels import Pixels
from charax.models.flows._single_scale import SingleScaleFlow, state_shape
from charax.nn import count_parameters
from charax.solve import Solver


@dataclass(frozen=True)
class AbstractFlowDesign(ABC):
    """Sizes and names from which a flow is built. Its fields are plain numbers and strings.

    ```python
    from charax.models.flows import AbstractFlowDesign, VectorFlowDesign

    design: AbstractFlowDesign = VectorFlowDesign("node", width=4, depth=1, timed=False)
    assert design.count((2,)) == (2 * 4 + 4) + (4 * 2 + 2)
    ```
    """

    @abstractmethod
    def build(self, shape: tuple[int, ...], *, key: PRNGKeyArray) -> AbstractFlow:
        """Build a flow with random weights.

        Args:
            shape: The shape of one sample.
            key: Random key of the initial weights.

        Returns:
            The flow.

        Raises:
            ValueError: If the design does not suit such samples.
        """

    def count(self, shape: tuple[int, ...]) -> int:
        """Count the parameters without allocating them.

        Args:
            shape: The shape of one sample.

        Returns:
            The number of parameters.
        """
        return count_parameters(eqx.filter_eval_shape(self.build, shape, key=jax.random.key(0)))


@dataclass(frozen=True)
class VectorFlowDesign(AbstractFlowDesign):
    """A flow of rows of numbers.

    ```python
    import jax
    from charax.models.flows import VectorFlowDesign

    assert VectorFlowDesign("node", width=68, timed=False).count((2,)) == 5_034
    flow = VectorFlowDesign("c-node", width=8).build((4,), key=jax.random.key(0))
    ```
    """

    method: str
    """"node" or "c-node"."""
    width: int = 64
    """The width of the hidden layers of a plain field, or of the Jacobian."""
    depth: int = 2
    """The number of hidden layers of every network."""
    characteristic_dim: int = 8
    """The number k of characteristic dimensions."""
    velocity_width: int = 16
    """The width of the hidden layers of the velocity."""
    timed: bool = True
    """Whether the field reads s."""
    classes: int = 0
    """The number of classes of a class-conditional density, which takes one-hot classes as its context; 0 for none."""
    end_time: float = 1.0
    """The time T at which the base distribution is reached."""
    learn_time: bool = False
    """Whether T is learned."""
    scale: float = 1.0
    """The standard deviation of the base distribution."""
    activation: str = "tanh"
    """The name of the activation function."""
    sharpness: float = 1.0
    """The factor inside the activations; above 1 the field may change over shorter distances."""
    frequencies: int = 0
    """The number of sines and cosines in front of every network; 0 for none."""
    frequency_scale: float = 4.0
    """The standard deviation of their frequencies."""

    def build(self, shape: tuple[int, ...], *, key: PRNGKeyArray) -> ContinuousFlow:
        if len(shape) != 1:
            raise ValueError(f"this design is for rows of numbers, and the samples have the shape {shape}")
        field = vector_flow_field(
            self.method,
            shape[0],
            hidden=(self.width,) * self.depth,
            velocity_hidden=(self.velocity_width,) * self.depth,
            characteristic_dim=self.characteristic_dim,
            reads=(*(("s",) if self.timed else ()), "u", *(("context",) if self.classes else ())),
            context=self.classes,
            activation=self.activation,
            sharpness=self.sharpness,
            frequencies=self.frequencies,
            frequency_scale=self.frequency_scale,
            key=key,
        )
        return ContinuousFlow(field, shape, end_time=self.end_time, learn_time=self.learn_time, scale=self.scale)


@dataclass(frozen=True)
class ImageFlowDesign(AbstractFlowDesign):
    """A flow of images.

    ```python
    from charax.models.flows import ImageFlowDesign

    assert ImageFlowDesign("node", blocks=2).count((28, 28, 1)) == 800_646  # FFJORD's
    assert ImageFlowDesign("node", blocks=2).count((32, 32, 3)) == 1_358_882
    ```
    """

    method: str
    """"node" or "c-node"."""
    width: int = 64
    """The number of hidden channels of a plain field, or of the Jacobian."""
    depth: int = 3
    """The number of hidden layers."""
    blocks: int = 1
    """The number of flows in a row at each scale, before and after the squeeze."""
    characteristic_dim: int = 2
    """The number k of characteristic dimensions."""
    velocity_width: int = 4
    """The number of hidden channels of the velocity."""
    levels: int = 256
    """The number of grey levels of a pixel."""
    alpha: float = 1e-6
    """Keeps the logit away from black and white."""
    activation: str = "softplus"
    """The name of the activation function."""

    def build(self, shape: tuple[int, ...], *, key: PRNGKeyArray) -> MultiScaleFlow:
        return MultiScaleFlow(
            lambda shape, key: image_flow_field(
                self.method,
                shape,
                hidden=(self.width,) * self.depth,
                characteristic_dim=self.characteristic_dim,
                velocity_width=self.velocity_width,
                activation=self.activation,
                key=key,
            ),
            shape,
            blocks=self.blocks,
            pixels=Pixels(self.levels, self.alpha),
            key=key,
        )


@dataclass(frozen=True)
class SingleScaleFlowDesign(AbstractFlowDesign):
    """A flow of images with one field, for flow matching.

    ```python
    from charax.models.flows import SingleScaleFlowDesign

    assert SingleScaleFlowDesign("c-node").count((28, 28, 1)) < 340_000
    ```
    """

    method: str
    """"node" or "c-node"."""
    width: int = 32
    """The number of hidden channels at full resolution."""
    halvings: int = 1
    """How often the side is halved inside the field."""
    characteristic_dim: int = 32
    """The number k of characteristic dimensions."""
    velocity_width: int = 16
    """The number of hidden channels of the velocity."""
    classes: int = 0
    """The number of classes of a class-conditional density, which takes one-hot classes as its context; 0 for none."""
    levels: int = 256
    """The number of grey levels of a pixel."""
    alpha: float = 1e-6
    """Keeps the logit away from black and white."""
    mean: tuple[float, ...] = ()
    """The mean logit of every pixel, row by row; with a rotation, the mean of every pixel."""
    std: tuple[float, ...] = ()
    """The standard deviation of the logit of every pixel; with a rotation, that of every cosine coefficient."""
    rotation: tuple[float, ...] = ()
    """A rotation of the channels, row by row, after which images are whitened; instead of logits."""
    edges: tuple[float, ...] = ()
    """The edges of the bins of `probabilities`, from 0 to 1."""
    probabilities: tuple[tuple[float, ...], ...] = ()
    """A histogram of every pixel, row by row, through which it becomes normal; instead of the moments of its logit."""

    def build(self, shape: tuple[int, ...], *, key: PRNGKeyArray) -> SingleScaleFlow:
        field = unet_flow_field(
            self.method,
            state_shape(shape),
            width=self.width,
            halvings=self.halvings,
            characteristic_dim=self.characteristic_dim,
            velocity_width=self.velocity_width,
            context=self.classes,
            key=key,
        )
        pixels = Pixels(self.levels, self.alpha)
        if self.edges:
            scaling = NormalQuantiles(shape, edges=self.edges, probabilities=self.probabilities)
        elif self.rotation:
            scaling = WhitenedPixels(shape, mean=self.mean, std=self.std, rotation=self.rotation)
        else:
            scaling = StandardizedLogits(shape, pixels, mean=self.mean, std=self.std)
        return SingleScaleFlow(field, shape, pixels=pixels, scaling=scaling)


class PaperFlow(NamedTuple):
    """A row of the paper's Table 2."""

    width: int
    parameters: float
    bits_per_dim: float
    nfe: int


# The paper reports the parameters of its flows and not their widths: these are the widths that come closest.
PAPER_FLOWS: Mapping[str, Mapping[FlowMethod, PaperFlow]] = MappingProxyType(
    {
        "mnist": {"node": PaperFlow(58, 336.1e3, 1.00, 1350), "c-node": PaperFlow(59, 338.0e3, 0.95, 1323)},
        "cifar10": {"node": PaperFlow(48, 410.1e3, 3.49, 1847), "c-node": PaperFlow(50, 406.0e3, 3.44, 1538)},
        "svhn": {"node": PaperFlow(48, 410.1e3, 2.15, 1844), "c-node": PaperFlow(50, 406.0e3, 2.12, 1352)},
    }
)
"""The flows of the paper's Table 2, by data set and method."""


def paper_flow_design(dataset: str, method: str) -> ImageFlowDesign:
    """Find the design of a flow of the paper's Table 2.

    ```python
    from charax.models.flows import paper_flow_design

    assert abs(paper_flow_design("mnist", "node").count((28, 28, 1)) / 336.1e3 - 1) < 0.02
    ```

    Args:
        dataset: "mnist", "cifar10" or "svhn".
        method: "node" or "c-node".

    Returns:
        The design.

    Raises:
        ValueError: If the paper has no such flow.
    """
    if dataset not in PAPER_FLOWS or method not in ("node", "c-node"):
        raise ValueError(
            f"the paper has no flow {method!r} for {dataset!r}; choose node or c-node, for {', '.join(PAPER_FLOWS)}"
        )
    return ImageFlowDesign(method, width=PAPER_FLOWS[dataset][method].width)


PAPER_FLOW_SOLVER = Solver("dopri5", rtol=1e-5, atol=1e-5, adjoint="backsolve")
"""The solver of the paper's flows."""
