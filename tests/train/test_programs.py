"""Exported programs give charax's own answers, in a process that never imports it."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.data import SeriesScaling, Standardizer
from charax.data.files._series import RawSeries
from charax.models import SeriesMethod
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
from charax.train import AbstractConfig, Program, TrainedModel, export_programs

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


def series_case(method: SeriesMethod) -> Case:
    """Three series of different lengths, with a missing value."""
    scaling = SeriesScaling(("a", "b"), Standardizer((1.0, 0.0), (2.0, 3.0)), duration=2.0, length=5.0)
    random = np.random.default_rng(0)
    times = np.cumsum(random.uniform(0.1, 1, (3, 7)), axis=1).astype(np.float32)
    times -= times[:, :1]
    times[1, 5:] = times[2, 3:] = np.nan
    values = random.normal(size=(3, 7, 2)).astype(np.float32)
    values[0, 2, 1] = np.nan
    ends = np.isnan(times)
    task: Any = SeriesConfig(data="none.csv", method=method, width=4).build_task(SeriesSpec(scaling, ("l", "r"), None))
    model = task.build(jax.random.key(0))

    def expected(x: dict[str, np.ndarray]) -> np.ndarray:
        rows = [each[~end].astype(float) for each, end in zip(values, ends, strict=True)]
        ticks = [each[~end].astype(float) for each, end in zip(times, ends, strict=True)]
        raw = RawSeries(Path("none.csv"), ["0", "1", "2"], ticks, rows, ("a", "b"), None, lambda i, j: "")
        return task.outputs(model, scaling.split(raw, np.arange(3), rows, length=7))

    return Case(TrainedModel(task, model), {"probabilities": expected}, {"times": times, "values": values})


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> dict[str, Case]:
    folder = tmp_path_factory.mktemp("data")
    digits = untrained(ClassificationConfig(data="digits", preset="dense", width=8))
    moons = untrained(DensityConfig(data="moons", width=8, points=200))
    pde = untrained(PDEConfig(data="burgers-wave", method="equation", width=4))
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
        "pde": Case(pde, {"solution": lambda x: pde.task.evaluate(pde.model, x["points"])[0]}),  # pyright: ignore[reportAttributeAccessIssue]
        "gru": series_case("gru"),
        "series": series_case("c-node"),
        "rows": Case(rows, {"values": lambda x: rows.task.values(rows.model, x["input"])}),  # pyright: ignore[reportAttributeAccessIssue]
    }


def test_programs_answer_as_charax_does_for_every_batch_size(cases, tmp_path):
    inputs: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    for name, case in cases.items():
        export_programs(case.trained, tmp_path / name, platforms=("cpu", "cuda"))
        described = json.loads((tmp_path / name / "programs.json").read_text())["programs"]
        assert described.keys() == case.expected.keys()
        inputs[name] = {
            program: case.inputs or {each: draw(shape[1:]) for each, shape in entry["inputs"].items()}
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


def test_a_task_without_programs_says_so(tmp_path):
    with pytest.raises(ValueError, match="cannot be exported yet"):
        export_programs(untrained(ForecastConfig()), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_flow_of_images_says_why_not(tmp_path):
    with pytest.raises(ValueError, match="flows of images"):
        export_programs(untrained(DensityConfig(data="digits")), tmp_path)


def test_a_model_that_follows_its_observations_says_why_not(tmp_path):
    with pytest.raises(ValueError, match="a cde takes its steps from observation to observation"):
        export_programs(series_case("cde").trained, tmp_path / "none")
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
x = np.load(folder / "x.npy")
(name,) = (each.name for each in session.get_inputs())
answers = {str(batch): session.run(None, {name: x[:batch]})[0] for batch in (2, 3)}
np.savez(folder / "answers.npz", **answers)
assert not any(name.partition(".")[0] in ("charax", "jax") for name in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["digits", "rows"])
def test_a_program_in_onnx_answers_as_charax_does_without_jax(name, cases, tmp_path):
    pytest.importorskip("jax2onnx", reason="pip install 'charax[onnx]'")
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    case = cases[name]
    export_programs(case.trained, tmp_path, format="onnx")
    (program,) = json.loads((tmp_path / "programs.json").read_text())["programs"].values()
    x = draw(program["inputs"]["input"][1:])
    np.save(tmp_path / "x.npy", x)
    subprocess.run([sys.executable, "-c", RUN_ONNX, str(tmp_path)], check=True, timeout=300)
    (answer,) = (each({"input": x}) for each in case.expected.values())
    expected = answer[0] if isinstance(answer, tuple) else answer
    with np.load(tmp_path / "answers.npz") as answers:
        np.testing.assert_allclose(answers["3"], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(answers["2"], expected[:2], rtol=1e-5, atol=1e-5)


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
