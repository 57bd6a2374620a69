"""Exported programs give charax's own answers, in a process that never imports it."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from charax.data import Observations, SeriesScaling, Standardizer
from charax.data.files._series import RawSeries
from charax.models import PDEMethod, SeriesMethod
from charax.tasks import (
    ClassificationConfig,
    DensityConfig,
    ForecastConfig,
    PDEConfig,
    RegressionConfig,
    SeriesConfig,
)
from charax.tasks.forecast import ForecastTask
from charax.tasks.series import SeriesSpec
from charax.train import AbstractConfig, Program, SolverConfig, TrainedModel, export_programs

RUN = """
import json, sys
from pathlib import Path
import jax, jax.export
import numpy as np

for folder in map(Path, sys.argv[1:]):
    answers = {}
    for name, program in json.loads((folder / "programs.json").read_text())["programs"].items():
        run = jax.jit(jax.export.deserialize((folder / program["file"]).read_bytes()).call)
        for batch in (2, 3):
            inputs = [np.load(folder / "inputs.npz")[f"{name} {each}"][:batch] for each in program["inputs"]]
            for number, out in enumerate(jax.tree.leaves(run(*inputs))):
                answers[f"{name} {number} {batch}"] = np.asarray(out)
    np.savez(folder / "outputs.npz", **answers)
assert not any(name.partition(".")[0] in ("charax", "equinox", "diffrax") for name in sys.modules)
"""


class Case(NamedTuple):
    """A task with random weights, and what its programs should answer."""

    trained: TrainedModel
    expected: dict[str, Callable[[dict[str, np.ndarray]], Any]]
    inputs: dict[str, np.ndarray] | None = None
    """Inputs of three samples that are not just any numbers."""


def untrained(config: AbstractConfig) -> TrainedModel:
    task = config.build_task(config.load_data().spec)
    return TrainedModel(task, task.build(jax.random.key(0)))


def regression_config(folder: Path) -> RegressionConfig:
    random = np.random.default_rng(0)
    x = random.normal(3, 2, (60, 2))
    np.savez(folder / "rows.npz", x=x, y=5 + x[:, 0] * x[:, 1])
    return RegressionConfig(data=str(folder / "rows.npz"), width=4)


def series_case(method: SeriesMethod, **options: Any) -> Case:
    """Three series of different lengths, with a missing value."""
    scaling = SeriesScaling(("a", "b"), Standardizer((1.0, 0.0), (2.0, 3.0)), duration=2.0, length=5.0)
    random = np.random.default_rng(0)
    times = np.cumsum(random.uniform(0.1, 1, (3, 7)), axis=1).astype(np.float32)
    times -= times[:, :1]
    times[1, 5:] = times[2, 3:] = np.nan
    values = random.normal(size=(3, 7, 2)).astype(np.float32)
    values[0, 2, 1] = np.nan
    ends = np.isnan(times)
    task: Any = SeriesConfig(data="none.csv", method=method, width=4, **options).build_task(
        SeriesSpec(scaling, ("l", "r"), None)
    )
    model = task.build(jax.random.key(0))

    def expected(x: dict[str, np.ndarray]) -> np.ndarray:
        rows = [each[~end].astype(float) for each, end in zip(values, ends, strict=True)]
        ticks = [each[~end].astype(float) for each, end in zip(times, ends, strict=True)]
        raw = RawSeries(Path("none.csv"), ["0", "1", "2"], ticks, rows, ("a", "b"), None, lambda i, j: "")
        return task.outputs(model, scaling.split(raw, np.arange(3), rows, length=7))

    return Case(TrainedModel(task, model), {"probabilities": expected}, {"times": times, "values": values})


def forecast_case() -> Case:
    """Forecasts up to and beyond the longest time in training."""
    task, model = untrained(ForecastConfig(width=4))
    model = eqx.apply_updates(
        model,
        jax.tree.map(
            lambda leaf: 0.3 * jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape),
            eqx.filter(model, eqx.is_inexact_array),
        ),
    )
    spec: Any = task.spec  # pyright: ignore[reportAttributeAccessIssue]
    time = np.asarray([0.3, 1.0, 2.0], np.float32) * np.float32(spec.last_time)
    start = np.random.default_rng(0).normal(size=(3, spec.scaling.values)).astype(np.float32)
    context = np.random.default_rng(1).normal(size=(3, spec.scaling.dim)).astype(np.float32)

    def expected(x: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        return task.forecast(model, Observations(start, time, context, start, np.zeros(3, np.int32)))  # pyright: ignore[reportAttributeAccessIssue]

    assert np.abs(expected({})[0] - start).min() > 1e-3  # the field moves them
    given = {"context": context} if spec.scaling.dim else {}
    return Case(TrainedModel(task, model), {"forecast": expected}, {"start": start, "time": time, **given})


def window_case() -> Case:
    """Three windows of the test split, of different lengths."""
    config = ForecastConfig(data="pendulum", history=5, width=4)
    data = config.load_data()
    task: Any = config.build_task(data.spec)
    model, units = task.build(jax.random.key(0)), task.spec.units
    windows = data.splits.test.take(np.arange(3))
    windows = windows._replace(past_lengths=np.asarray([5, 3, 4], np.int32))
    ends = np.arange(5) >= windows.past_lengths[:, None]
    raw = units.standardizer.inverse(windows.past_values).astype(np.float32)
    inputs = {
        "past_times": np.where(ends, np.nan, units.time_unit * windows.past_times).astype(np.float32),
        "past": np.where(ends[:, :, None], np.nan, raw).astype(np.float32),
        "times": (units.time_unit * windows.times).astype(np.float32),
    }
    # Behind the end, as the data have it.
    last = np.take_along_axis(windows.past_times, windows.past_lengths[:, None] - 1, axis=1)
    behind = np.arange(5) - windows.past_lengths[:, None] + 1
    padded = windows._replace(
        past_times=np.where(ends, last + behind, windows.past_times).astype(np.float32),
        past_values=np.where(ends[:, :, None], np.nan, windows.past_values).astype(np.float32),
    )
    return Case(TrainedModel(task, model), {"forecast": lambda x: task.forecast(model, padded)}, inputs)


def conditional_images() -> Case:
    """A matched flow of images, given their class."""
    task, flow = untrained(
        DensityConfig(
            data="digits",
            width=4,
            objective="matching",
            conditional=True,
            solver=SolverConfig(solver="midpoint", steps=2),
        )
    )
    images = np.random.default_rng(0).integers(0, 17, (3, 8, 8, 1)).astype(np.float32)
    noise = np.random.default_rng(1).normal(size=(3, *flow.noise_shape)).astype(np.float32)  # pyright: ignore[reportAttributeAccessIssue]
    condition = np.eye(10, dtype=np.float32)[[7, 7, 7]]

    def sample(x: dict[str, np.ndarray]) -> Array:
        state = flow.flow.inverse(jnp.asarray(noise), solver=task.solver, context=jnp.asarray(condition)).u  # pyright: ignore[reportAttributeAccessIssue]
        return flow.pixels.quantise(flow.to_pixels(state))  # pyright: ignore[reportAttributeAccessIssue]

    return Case(
        TrainedModel(task, flow),
        {"bits_per_dim": lambda x: task.log_density(flow, images, "7"), "sample": sample},  # pyright: ignore[reportAttributeAccessIssue]
        {"input": images, "noise": noise, "condition": condition},
    )


def columns_case(folder: Path) -> Case:
    """The density of two columns of a table given the one between them."""
    rows = np.random.default_rng(0).normal([1, 2, 3], [1, 2, 3], (60, 3)).astype(np.float32)
    (folder / "rows.csv").write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n")
    task, flow = untrained(DensityConfig(data=str(folder / "rows.csv"), width=4, context=("b",)))
    spec: Any = task.spec  # pyright: ignore[reportAttributeAccessIssue]
    noise = np.random.default_rng(1).normal(size=(3, 2)).astype(np.float32)

    def sample(x: dict[str, np.ndarray]) -> np.ndarray:
        given = spec.standardizer.select([1]).apply(rows[:3, 1:2]).astype(np.float32)
        points = flow.inverse(flow.scale * jnp.asarray(noise), solver=task.solver, context=jnp.asarray(given)).u  # pyright: ignore[reportAttributeAccessIssue]
        return spec.standardizer.select([0, 2]).inverse(np.asarray(points))

    return Case(
        TrainedModel(task, flow),
        {"log_density": lambda x: task.log_density(flow, rows[:3]), "sample": sample},  # pyright: ignore[reportAttributeAccessIssue]
        {"input": rows[:3], "noise": noise, "columns": rows[:3, 1:2]},
    )


def image_case() -> Case:
    """A flow of images: whole grey levels, the noise that dequantises them, and the probes of the trace."""
    task, flow = untrained(DensityConfig(data="digits", width=4, solver=SolverConfig(solver="midpoint", steps=2)))
    images = np.random.default_rng(0).integers(0, 17, (3, 8, 8, 1)).astype(np.float32)
    noise = np.random.default_rng(1).normal(size=(3, 64)).astype(np.float32)
    return Case(
        TrainedModel(task, flow),
        {
            "bits_per_dim": lambda x: task.log_density(flow, images),  # pyright: ignore[reportAttributeAccessIssue]
            "sample": lambda x: flow.pixels.quantise(
                flow.inverse(jnp.asarray(noise), solver=task.solver, key=jax.random.key(0)).u
            ),  # pyright: ignore[reportAttributeAccessIssue]
        },
        {"input": images, "noise": noise},
    )


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> dict[str, Case]:
    folder = tmp_path_factory.mktemp("data")
    digits = untrained(ClassificationConfig(data="digits", preset="dense", width=8))
    moons = untrained(DensityConfig(data="moons", width=8, points=200))
    pde = {name: untrained(PDEConfig(data="burgers-wave", method=name, width=4)) for name in get_args(PDEMethod)}
    rows = untrained(regression_config(folder))
    task: Any = moons.task
    return {
        "digits": Case(digits, {"probabilities": lambda x: digits.task.probabilities(digits.model, x["input"])}),  # pyright: ignore[reportAttributeAccessIssue]
        "moons": Case(
            moons,
            {
                "log_density": lambda x: task.log_density(moons.model, x["input"]),
                "sample": lambda x: task.spec.standardizer.inverse(
                    np.asarray(moons.model.inverse(moons.model.scale * jnp.asarray(x["noise"]), solver=task.solver).u)  # pyright: ignore[reportAttributeAccessIssue]
                ),
            },
        ),
        **{
            f"pde-{name}": Case(
                each,
                {"solution": lambda x, each=each: each.task.evaluate(each.model, x["points"])[0]},  # pyright: ignore[reportAttributeAccessIssue]
            )
            for name, each in pde.items()
        },
        "gru": series_case("gru"),
        "series": series_case("c-node"),
        "cde": series_case("cde"),
        "hybrid": series_case("hybrid"),
        "forecast": forecast_case(),
        "windows": window_case(),
        "rows": Case(rows, {"values": lambda x: rows.task.values(rows.model, x["input"])}),  # pyright: ignore[reportAttributeAccessIssue]
    }


def test_programs_answer_as_charax_does_for_every_batch_size(cases, tmp_path):
    compare_answers(cases, tmp_path)


@pytest.mark.slow
def test_programs_of_images_and_of_conditional_densities_answer_as_charax_does(tmp_path):
    cases = {"images": image_case(), "conditional": conditional_images(), "columns": columns_case(tmp_path)}
    compare_answers(cases, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"interpolation": "linear"}, {"interpolation": "rectilinear"}, {"windows": 3}])
def test_programs_of_series_answer_as_charax_does_for_every_path(options, tmp_path):
    compare_answers({"series": series_case("cde", **options)}, tmp_path)


def compare_answers(cases: dict[str, Case], tmp_path: Path) -> None:
    """Export in this process, run in another one, and compare."""
    inputs: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    for name, case in cases.items():
        export_programs(case.trained, tmp_path / name, platforms=("cpu", "cuda"))
        described = json.loads((tmp_path / name / "programs.json").read_text())["programs"]
        assert described.keys() == case.expected.keys()
        inputs[name] = {
            program: {
                each: draw(shape[1:]) if case.inputs is None else case.inputs[each]
                for each, shape in entry["inputs"].items()
            }
            for program, entry in described.items()
        }
        flat = {f"{program} {each}": array for program, group in inputs[name].items() for each, array in group.items()}
        np.savez(tmp_path / name / "inputs.npz", allow_pickle=False, **flat)
    subprocess.run([sys.executable, "-c", RUN, *(str(tmp_path / name) for name in cases)], check=True, timeout=120)
    for name, case in cases.items():
        with np.load(tmp_path / name / "outputs.npz") as outputs:
            for program, expected in case.expected.items():
                answer = expected(inputs[name][program])
                for number, each in enumerate(answer if isinstance(answer, tuple) else (answer,)):
                    ours = np.asarray(each)
                    np.testing.assert_allclose(outputs[f"{program} {number} 3"], ours, rtol=1e-5, atol=1e-5)
                    # Fixed steps: a smaller batch has the same answers.
                    np.testing.assert_allclose(outputs[f"{program} {number} 2"], ours[:2], rtol=1e-3, atol=1e-3)


def draw(shape: list[int]) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.1, 0.9, (3, *shape)).astype(np.float32)


def test_a_forecast_over_a_gap_that_is_too_long_has_no_answer(cases):
    case = cases["windows"]
    program = case.trained.task.programs(case.trained.model)["forecast"]
    times = case.inputs["times"].copy()
    times[1, -1] += 10 * case.trained.task.spec.units.longest_gap
    mean, *_ = program.function(case.inputs["past_times"], case.inputs["past"], times)
    assert np.isnan(mean).all(axis=(1, 2)).tolist() == [False, True, False]


def test_a_path_that_needs_the_length_of_the_series_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"natural splines .* --interpolation hermite"):
        export_programs(series_case("cde", interpolation="natural").trained, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_unknown_platforms_are_refused(cases, tmp_path):
    with pytest.raises(ValueError, match="unknown platform abacus"):
        export_programs(cases["digits"].trained, tmp_path, platforms=("abacus",))


def test_what_jax_cannot_export_is_a_sentence(tmp_path):
    class Odd(ForecastTask):
        def programs(self, model):
            return {"odd": Program(lambda x: x if x.shape[0] > 3 else -x, {"x": (2,)}, "")}

    task, model = untrained(ForecastConfig())
    odd = Odd(**{field.name: getattr(task, field.name) for field in dataclasses.fields(task)})
    with pytest.raises(ValueError, match="'odd' of this model cannot be exported"):
        export_programs(TrainedModel(odd, model), tmp_path)


RUN_ONNX = """
import sys
from pathlib import Path
import numpy as np
import onnxruntime

folder = Path(sys.argv[1])
session = onnxruntime.InferenceSession(next(folder.glob("*.onnx")))
inputs = list(np.load(folder / "inputs.npz").values())
names = [each.name for each in session.get_inputs()]
for batch in (2, 3):
    answers = session.run(None, {name: x[:batch] for name, x in zip(names, inputs, strict=True)})
    np.savez(folder / f"answers{batch}.npz", *answers)
assert not any(name.partition(".")[0] in ("charax", "jax") for name in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["digits", "rows", "forecast"])
def test_a_program_in_onnx_answers_as_charax_does_without_jax(name, cases, tmp_path):
    pytest.importorskip("jax2onnx", reason="pip install 'charax[onnx]'")
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    case = cases[name]
    export_programs(case.trained, tmp_path, format="onnx")
    (program,) = json.loads((tmp_path / "programs.json").read_text())["programs"].values()
    inputs = case.inputs or {each: draw(shape[1:]) for each, shape in program["inputs"].items()}
    np.savez(tmp_path / "inputs.npz", allow_pickle=False, **inputs)
    subprocess.run([sys.executable, "-c", RUN_ONNX, str(tmp_path)], check=True, timeout=300)
    (answer,) = (each(inputs) for each in case.expected.values())
    for number, expected in enumerate(answer if isinstance(answer, tuple) else (answer,)):
        for batch in (2, 3):
            with np.load(tmp_path / f"answers{batch}.npz") as answers:
                np.testing.assert_allclose(answers[f"arr_{number}"], expected[:batch], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_has_no_form_in_onnx_is_a_sentence_before_anything_is_written(tmp_path):
    pytest.importorskip("jax2onnx", reason="pip install 'charax[onnx]'")
    with pytest.raises(ValueError, match="'log_density' of this model has no form in ONNX"):
        export_programs(untrained(DensityConfig(data="moons", width=8, points=200)), tmp_path / "none", format="onnx")
    assert not (tmp_path / "none").exists()


def test_onnx_without_its_converter_names_the_extra(cases, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax2onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"charax\[onnx\]"):
        export_programs(cases["digits"].trained, tmp_path / "none", format="onnx")
    assert not (tmp_path / "none").exists()
