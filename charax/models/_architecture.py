"""A model as data: everything that is needed to build it again, and nothing that was learned."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any

from jaxtyping import PRNGKeyArray

from charax.models._classifier import Classifier


@dataclass(frozen=True)
class AbstractArchitecture(ABC):
    """Sizes and names from which a classifier is built. Its fields are plain numbers and words."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name of this kind of architecture in a file."""

    @abstractmethod
    def build(self, shape: tuple[int, ...], classes: int, *, key: PRNGKeyArray) -> Classifier:
        """A new classifier for inputs of one `shape`."""

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and words; `read_architecture` is the inverse."""
        return {"kind": self.kind, **asdict(self)}
