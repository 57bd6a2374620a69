"""Flows as data: everything that is needed to build them again, and the paper's."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

from charax.models._names import FlowMethod
from charax.models.flows._continuous import ContinuousFlow
from charax.models.flows._fields import image_flow_field, vector_flow_field
from charax.models.flows._flow import AbstractFlow
from charax.models.flows._multiscale import MultiScaleFlow
from charax.models.flows._pixels import Pixels
from charax.nn import count_parameters
from charax.solve import Solver


@dataclass(frozen=True)
class AbstractFlowDesign(ABC):
    """Sizes and names from which a density is built. Its fields are plain numbers and words."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name of this kind of design in a file."""

    @abstractmethod
    def build(self, shape: tuple[int, ...], *, key: PRNGKeyArray) -> AbstractFlow:
        """A new density of samples of one `shape`."""

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and words; `read_flow_design` is the inverse."""
        return {"kind": self.kind, **asdict(self)}

    def count(self, shape: tuple[int, ...]) -> int:
        """The parameters, without making them."""
        return count_parameters(eqx.filter_eval_shape(self.build, shape, key=jax.random.key(0)))


@dataclass(frozen=True)
class VectorFlowDesign(AbstractFlowDesign):
    """The density of rows of numbers.

    ```python
    import jax
    from charax.models.flows import VectorFlowDesign

    assert VectorFlowDesign("node", width=68, timed=False).count((2,)) == 5_034
    flow = VectorFlowDesign("c-node", width=8).build((4,), key=jax.random.key(0))
    ```
    """

    method: str
    width: int = 64
    depth: int = 2
    characteristic_dim: int = 8
    velocity_width: int = 16
    timed: bool = True
    """Whether the field reads s."""
    classes: int = 0
    """Columns of the context: the number of classes of a density for each class."""
    end_time: float = 1.0
    learn_time: bool = False
    scale: float = 1.0
    activation: str = "tanh"
    sharpness: float = 1.0
    """Above 1, the field may change over shorter ways."""

    @property
    def kind(self) -> str:
        return "vector-flow"

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
            key=key,
        )
        return ContinuousFlow(field, shape, end_time=self.end_time, learn_time=self.learn_time, scale=self.scale)


@dataclass(frozen=True)
class ImageFlowDesign(AbstractFlowDesign):
    """The density of images.

    ```python
    from charax.models.flows import ImageFlowDesign

    assert ImageFlowDesign("node", blocks=2).count((28, 28, 1)) == 800_646  # FFJORD's
    assert ImageFlowDesign("node", blocks=2).count((32, 32, 3)) == 1_358_882
    ```
    """

    method: str
    width: int = 64
    depth: int = 3
    blocks: int = 1
    characteristic_dim: int = 2
    velocity_width: int = 4
    levels: int = 256
    alpha: float = 1e-6
    activation: str = "softplus"

    @property
    def kind(self) -> str:
        return "image-flow"

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


class PaperFlow(NamedTuple):
    """A row of the paper's Table 2."""

    width: int
    parameters: float
    bits_per_dim: float
    nfe: int


# The paper says how many parameters its flows have and not their widths: these are the widths that come closest.
PAPER_FLOWS: Mapping[str, Mapping[FlowMethod, PaperFlow]] = MappingProxyType(
    {
        "mnist": {"node": PaperFlow(58, 336.1e3, 1.00, 1350), "c-node": PaperFlow(59, 338.0e3, 0.95, 1323)},
        "cifar10": {"node": PaperFlow(48, 410.1e3, 3.49, 1847), "c-node": PaperFlow(50, 406.0e3, 3.44, 1538)},
        "svhn": {"node": PaperFlow(48, 410.1e3, 2.15, 1844), "c-node": PaperFlow(50, 406.0e3, 2.12, 1352)},
    }
)


def paper_flow_design(dataset: str, method: str) -> ImageFlowDesign:
    """The design of a row of the paper's Table 2.

    ```python
    from charax.models.flows import paper_flow_design

    assert abs(paper_flow_design("mnist", "node").count((28, 28, 1)) / 336.1e3 - 1) < 0.02
    ```
    """
    if dataset not in PAPER_FLOWS or method not in ("node", "c-node"):
        raise ValueError(
            f"the paper has no flow {method!r} for {dataset!r}; choose node or c-node, for {', '.join(PAPER_FLOWS)}"
        )
    return ImageFlowDesign(method, width=PAPER_FLOWS[dataset][method].width)


PAPER_FLOW_SOLVER = Solver("dopri5", rtol=1e-5, atol=1e-5, adjoint="backsolve")

_KINDS: dict[str, type[AbstractFlowDesign]] = {"vector-flow": VectorFlowDesign, "image-flow": ImageFlowDesign}


def read_flow_design(stored: dict[str, Any]) -> AbstractFlowDesign:
    """The inverse of `AbstractFlowDesign.to_json`."""
    kind = stored.get("kind", "")
    if kind not in _KINDS:
        raise ValueError(f"unknown kind of flow {kind!r}; this version knows {', '.join(_KINDS)}")
    return _KINDS[kind](**{name: value for name, value in stored.items() if name != "kind"})
