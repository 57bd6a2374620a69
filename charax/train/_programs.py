"""Models as programs: a trained model with its solver, compiled to StableHLO, which runs without charax."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from charax._version import __version__
from charax.data import Standardizer
from charax.train._checkpoints import write_json
from charax.train._export import TrainedModel
from charax.train._names import ProgramFormat
from charax.train._precision import computing_in

PLATFORMS = ("cpu", "cuda", "tpu")
"""Where a program can run."""


class Program(NamedTuple):
    """A function of arrays with the samples in their first axis.

    ```python
    import jax.numpy as jnp
    from charax.train import Program

    program = Program(jnp.sin, {"angle": (3,)}, "The sine of three angles.")
    assert program.function(jnp.zeros((2, 3))).shape == (2, 3)
    ```
    """

    function: Callable[..., PyTree]
    """Maps the inputs, in their order, to arrays."""
    inputs: Mapping[str, tuple[int | str, ...]]
    """The names of the inputs, and the shape of one sample of each. A name in a shape stands for any number."""
    description: str
    """What it computes, in a sentence."""


def export_programs(
    trained: TrainedModel,
    folder: Path | str,
    *,
    platforms: Sequence[str] = PLATFORMS,
    format: ProgramFormat = "stablehlo",  # noqa: A002  # the word of the command line
) -> list[Path]:
    """Write the programs of a trained model, for any batch size.

    Each is a file, and `programs.json` describes them. Loading and calling them needs neither charax nor the weights:
    `jax.export.deserialize` reads StableHLO, `onnxruntime.InferenceSession` reads ONNX.

    ```python
    import tempfile

    import jax
    import charax

    config = charax.ClassificationConfig(data="digits", preset="dense", width=8)
    task = config.build_task(config.load_data().spec)
    trained = charax.train.TrainedModel(task, task.build(jax.random.key(0)))
    with tempfile.TemporaryDirectory() as folder:
        program, _ = charax.export_programs(trained, folder, platforms=("cpu",))
        probabilities = jax.export.deserialize(program.read_bytes()).call(jax.numpy.ones((3, 8, 8, 1)))
    assert probabilities.shape == (3, 10)
    ```

    Args:
        trained: A model and its task, as `load_model` returns them.
        folder: Folder of the files; it is made if it does not exist.
        platforms: Where the programs are to run, as StableHLO; ONNX has one form for all.
        format: stablehlo or onnx.

    Returns:
        The files.

    Raises:
        ValueError: If a model of this task has no programs, a platform is unknown, or a solver or trace of this model
            cannot be exported. Nothing is written then.
        ImportError: If flatbuffers, or for ONNX jax2onnx, is not installed.
    """
    unknown = set(platforms) - set(PLATFORMS)
    if unknown or not platforms:
        raise ValueError(f"unknown platform {', '.join(sorted(unknown))}; choose from {', '.join(PLATFORMS)}")
    with computing_in(trained.model):
        programs, contents = _compile(trained, platforms, format)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        (folder / file).write_bytes(content)
    write_json(folder / "programs.json", _describe(programs, platforms, format))
    return [folder / file for file in (*contents, "programs.json")]


def _compile(
    trained: TrainedModel, platforms: Sequence[str], format_: ProgramFormat
) -> tuple[Mapping[str, Program], dict[str, bytes]]:
    """The programs, and the contents of their files."""
    programs = trained.task.programs(trained.model)
    if format_ == "onnx":
        from charax.train._onnx import convert_to_onnx

        return programs, {f"{name}.onnx": convert_to_onnx(name, program) for name, program in programs.items()}
    _check_flatbuffers()
    files = {f"{name}.stablehlo": _serialize(name, program, platforms) for name, program in programs.items()}
    return programs, files


def standardize(raw: Float[Array, "batch *shape"], standardizer: Standardizer) -> Float[Array, "batch *shape"]:
    """`Standardizer.apply` as a part of a program, in single precision.

    Args:
        raw: Values in the units of the data.
        standardizer: The scale.

    Returns:
        What the model reads.

    ```python
    import jax.numpy as jnp
    import numpy as np
    from charax.data import Standardizer
    from charax.train import restore, standardize

    standardizer = Standardizer.fit(np.array([[1.0], [3.0]], np.float32))
    raw = jnp.array([[2.0]])
    assert standardize(raw, standardizer) == 0
    assert restore(standardize(raw, standardizer), standardizer) == raw
    ```
    """
    return (raw - jnp.asarray(standardizer.mean, raw.dtype)) / jnp.asarray(standardizer.std, raw.dtype)


def restore(values: Float[Array, "batch *shape"], standardizer: Standardizer) -> Float[Array, "batch *shape"]:
    """`Standardizer.inverse` as a part of a program, in single precision.

    Args:
        values: Standardized values.
        standardizer: The scale.

    Returns:
        Values in the units of the data.

    ```python
    import jax.numpy as jnp
    import numpy as np
    from charax.data import Standardizer
    from charax.train import restore

    standardizer = Standardizer.fit(np.array([[1.0], [3.0]], np.float32))
    assert restore(jnp.zeros((1, 1)), standardizer) == 2
    ```
    """
    return jnp.asarray(standardizer.mean, values.dtype) + jnp.asarray(standardizer.std, values.dtype) * values


def scale_series(
    times: Float[Array, "batch length"],
    values: Float[Array, "batch length channels"],
    unit: float,
    standardizer: Standardizer,
) -> tuple[Float[Array, "batch length"], Float[Array, "batch length channels"], Int[Array, "batch"]]:
    """Series as a model reads them, as `SeriesScaling.split` and `cut_window` prepare them.

    Args:
        times: Times, NaN behind the end of a series.
        values: Values in the units of the data, NaN where one is missing.
        unit: The unit of time inside the model.
        standardizer: The scale of the values.

    Returns:
        Times, which increase behind the end, too; standardized values; and the number of observations.

    ```python
    import jax.numpy as jnp
    from charax.data import Standardizer
    from charax.train import scale_series

    times = jnp.array([[2.0, 4.0, jnp.nan]])
    scaled, _, lengths = scale_series(times, jnp.ones((1, 3, 1)), 2.0, Standardizer((0.0,), (1.0,)))
    assert scaled[0].tolist() == [0, 1, 2] and lengths[0] == 2
    ```
    """
    lengths = jnp.sum(~jnp.isnan(times), axis=1).astype(jnp.int32)
    scaled = (times - times[:, :1]) / jnp.asarray(unit, times.dtype)
    last = jnp.take_along_axis(scaled, lengths[:, None] - 1, axis=1)
    behind = jnp.arange(times.shape[1])[None] - lengths[:, None] + 1  # 1, 2, … behind the end
    scaled = jnp.where(behind > 0, last + behind, scaled)
    return scaled, jnp.where(behind[:, :, None] > 0, jnp.nan, standardize(values, standardizer)), lengths


def _serialize(name: str, program: Program, platforms: Sequence[str]) -> bytes:
    names = list(dict.fromkeys(size for shape in _shapes(program).values() for size in shape if isinstance(size, str)))
    constraints = [f"{name} >= 2" for name in names if name == "length"]  # one observation has no differences
    sizes: dict[Any, Any] = dict(
        zip(names, jax.export.symbolic_shape(", ".join(names), constraints=constraints), strict=True)
    )
    shapes = [[sizes.get(size, size) for size in shape] for shape in _shapes(program).values()]
    inputs = [jax.ShapeDtypeStruct(tuple(shape), jnp.float32) for shape in shapes]
    try:
        exported = jax.export.export(jax.jit(program.function), platforms=platforms)(*inputs)
        return bytes(exported.serialize())
    except Exception as error:
        # A shape that must be known, or an operation without a portable form: JAX has no common class for these.
        reason = str(error).splitlines()[0]
        raise ValueError(f"the program {name!r} of this model cannot be exported: {reason}") from error


def _shapes(program: Program) -> dict[str, list[int | str]]:
    return {name: ["batch", *shape] for name, shape in program.inputs.items()}


def _describe(programs: Mapping[str, Program], platforms: Sequence[str], suffix: str) -> dict[str, Any]:
    return {
        "charax": __version__,
        "jax": jax.__version__,
        "platforms": list(platforms),
        "programs": {
            name: {
                "file": f"{name}.{suffix}",
                "description": program.description,
                "inputs": _shapes(program),
                "dtype": "float32",
            }
            for name, program in programs.items()
        },
    }


def _check_flatbuffers() -> None:
    try:
        import flatbuffers  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError("programs are written with flatbuffers: pip install 'charax[export]'") from error
