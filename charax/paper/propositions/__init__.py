"""The paper's propositions, each checked in numbers."""

from typing import NamedTuple

from charax.paper.propositions import _characteristics, _homeomorphism, _intersecting, _log_density
from charax.paper.propositions._characteristics import Characteristics
from charax.paper.propositions._homeomorphism import Homeomorphisms
from charax.paper.propositions._intersecting import Intersecting
from charax.paper.propositions._log_density import LogDensity


class Propositions(NamedTuple):
    """All four results."""

    intersecting: Intersecting
    homeomorphism: Homeomorphisms
    characteristics: Characteristics
    log_density: LogDensity

    def to_json(self) -> dict[str, dict[str, float | str]]:
        """The errors, without the curves."""
        return {
            "intersecting": {
                "construction_error": self.intersecting.construction_error,
                "c_node_error": self.intersecting.c_node_error,
                "c_node_parameters": self.intersecting.c_node_parameters,
                "node_error": self.intersecting.node_error,
                "node_parameters": self.intersecting.node_parameters,
            },
            "homeomorphism": {
                "forward_error": self.homeomorphism.forward_error,
                "inverse_error": self.homeomorphism.inverse_error,
            },
            "characteristics": {"error": self.characteristics.error},
            "log_density": {
                "error": self.log_density.error,
                "error_when_conditioned": self.log_density.error_when_conditioned,
                "refusal": self.log_density.refusal,
            },
        }


def run(*, seed: int = 0) -> Propositions:
    """Check all propositions; takes half a minute, most of it to compile."""
    return Propositions(
        _intersecting.run(seed=seed), _homeomorphism.run(), _characteristics.run(), _log_density.run(seed=seed)
    )


__all__ = ["Propositions", "run"]
