"""Settings of densities that do nothing with some data and some other settings."""

import math
from typing import TYPE_CHECKING

from charax import data
from charax.tasks.density._names import EXACT_UP_TO

if TYPE_CHECKING:
    from charax.tasks.density._config import DensityConfig
    from charax.tasks.density._spec import DensitySpec
    from charax.tasks.density._transport import TransportSpec


def find_unused(config: "DensityConfig", spec: "DensitySpec | TransportSpec") -> dict[tuple[str, ...], str]:
    """What to do instead, for each group of fields that do nothing."""
    names = [config.data, config.source or ""]
    found: dict[tuple[str, ...], str] = {}
    if not any(map(data.is_text_table, names)):
        found["separator",] = "only text files with columns have one: leave it out"
    if not any(name in data.TOYS for name in names):
        found["points",] = f"they are those of a toy, and {config.data} has its own: leave it out"
    if config.method == "node":
        found["characteristic_dim",] = "a node has no characteristics: choose c-node, or leave it out"
    if len(spec.shape) == 1:
        found["shrink",] = "only images are shrunk: leave it out"
        by_default = config.objective != "likelihood" and config.preset != "paper"
        if not (by_default if config.frequencies is None else config.frequencies):
            found["frequency_scale",] = "the flow has no frequencies: add --frequencies 16, or leave it out"
    if config.objective == "matching":
        found["solver.adjoint",] = "flow matching takes no gradient of a solve: leave it out"
        if math.prod(spec.shape) <= EXACT_UP_TO:
            found["trace", "probes"] = (
                "flow matching needs no trace, and the likelihood of so few numbers is exact: leave it out"
            )
    if (config.trace or ("hutchinson" if len(spec.shape) > 1 else "exact")) in ("exact", "hutch++"):
        found["probes",] = "only hutchinson and gaussian have some: add --trace hutchinson, or leave it out"
    return found
