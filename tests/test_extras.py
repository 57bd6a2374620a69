"""What can be used with the core dependencies alone, and without importing JAX."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {extras}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Block())
"""
EXTRAS = {
    "matplotlib",
    "sklearn",
    "orbax",
    "safetensors",
    "tyro",
    "rich",
    "PIL",
    "scipy",
    "pooch",
    "pandas",
    "pyarrow",
    "plotly",
    "tensorboardX",
    "grain",
}
"""Modules of the extras. JAX itself imports some of SciPy, which is among its own dependencies."""

CORE = """
import jax
import charax

model = charax.neural_ode("c-node", 2, width=4, key=jax.random.key(0))
assert model(jax.numpy.ones((3, 2)), solver=charax.Solver("euler", steps=1)).u.shape == (3, 2)
field = charax.vector_flow_field("c-node", 2, hidden=(4,), velocity_hidden=(4,), key=jax.random.key(0))
flow, solver = charax.ContinuousFlow(field, (2,)), charax.Solver("euler", steps=1)
assert flow.log_prob(jax.numpy.ones((3, 2)), solver=solver).shape == (3,)
assert charax.pde.PROBLEMS["advection"]().dim == 1
assert charax.train.TASKS.keys() == {"classify", "regress", "density", "pde", "forecast", "series"}
"""


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_fields_solvers_models_flows_and_pdes_need_no_extra():
    finished = run(BLOCK.format(extras=EXTRAS - {"scipy"}) + CORE)
    assert finished.returncode == 0, finished.stderr


def test_the_command_line_without_its_extra_names_what_to_install():
    finished = run(BLOCK.format(extras=EXTRAS) + "from charax.cli import main\nsys.exit(main(['models']))")
    assert finished.returncode == 1
    assert "pip install 'charax[all]'" in finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize(
    "code",
    [
        "import charax",
        "import charax.train, charax.tasks, charax.data, charax.models, charax.paper, charax.cli",
        "from charax import ClassificationConfig; ClassificationConfig()",
    ],
)
def test_importing_does_not_import_jax(code):
    finished = run(code + "\nimport sys\nassert not {'jax', 'numpy', 'matplotlib', 'sklearn'} & set(sys.modules)")
    assert finished.returncode == 0, finished.stderr
