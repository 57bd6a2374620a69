"""Programs as ONNX files, by jax2onnx: they run with onnxruntime, without JAX."""

import logging
import warnings
from typing import Any

from charax.train._programs import Program


def convert_to_onnx(name: str, program: Program) -> bytes:
    """Convert a program, for any batch size.

    Args:
        name: Its name.
        program: The program.

    Returns:
        The content of an .onnx file; its inputs are in the order of `program.inputs`.

    Raises:
        ValueError: If an operation of the program has no counterpart in ONNX.
        ModuleNotFoundError: If jax2onnx is not installed.
    """
    try:
        import jax2onnx  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("programs are converted by jax2onnx: pip install 'charax[onnx]'") from error
    for module in ("jax2onnx", "onnx_ir"):  # they speak of plugins and types that these programs do not have
        logging.getLogger(module).setLevel(logging.ERROR)
    inputs = [("batch", *shape) for shape in program.inputs.values()]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model: Any = jax2onnx.to_onnx(program.function, inputs=inputs, model_name=name, return_mode="proto")
    except Exception as error:  # there is no common class for what it cannot convert
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"the program {name!r} of this model has no form in ONNX ({reason}), so nothing was written: use --format "
            "stablehlo, or a model with fixed steps"
        ) from error
    return model.SerializeToString()
