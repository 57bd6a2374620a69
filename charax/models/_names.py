"""Names that appear in configs. This module imports nothing heavy, so that a command line can read it without JAX."""

from typing import Literal, get_args

from charax.fields import JacobianForm as JacobianForm

Method = Literal[
    "node",
    "c-node",
    "anode",
    "anode+c-node",
    "2nd-order",
    "2nd-order+c-node",
    "il-node",
    "il-node+c-node",
]
"""The paper's eight methods of classification."""
METHODS_WITHOUT_CHANNELS: tuple[Method, ...] = ("node", "c-node")
"""The methods that add no channels to those of the data."""
METHOD_NAMES: tuple[Method, ...] = get_args(Method)
"""The names of the paper's eight methods."""
FlowMethod = Literal["node", "c-node"]
"""The fields of a flow: plain or characteristic."""
ForecastMethod = Literal["c-node", "node", "node-fair"]
"""The fields of a forecaster; `node` is the paper's baseline, which reads the time."""
ForecastStart = Literal["linear", "last"]
"""What a forecaster learns to add to: a linear forecast, or the last value."""
SeriesMethod = Literal["cde", "hybrid", "c-node", "node", "gru"]
"""The models of whole series, as in `SeriesDesign`."""
SeriesReadout = Literal["last", "mean"]
"""What the outputs of a model of whole series are made from."""
PDEMethod = Literal["c-node", "node", "node-fair", "equation", "mlp"]
"""The regressors of solutions of PDEs, as in `build_regressor`."""
Preset = Literal["small", "cpu", "paper", "dense", "ode"]
"""The presets of `find_design`."""
Dependence = Literal["x", "t", "u"]
"""What a coefficient of a learned PDE may depend on."""
FluxShape = Literal["any", "increasing", "decreasing", "convex", "concave"]
"""What is known about the flux f of a learned conservation law uₜ + f(u)ₓ = c."""
