"""Names of choices, which the command line needs without JAX."""

from typing import Literal

ProgramFormat = Literal["stablehlo", "onnx"]
"""The formats of exported programs."""
