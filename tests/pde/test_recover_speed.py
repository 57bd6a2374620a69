"""The example that a newcomer runs."""

import runpy
from pathlib import Path

import jax
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "recover_speed.py"


@pytest.mark.slow
def test_example_recovers_speed_and_width_from_noisy_samples():
    with jax.enable_x64(False):  # as a newcomer runs it
        found = runpy.run_path(str(EXAMPLE))["recover"](speed=1.1, width=0.6)
    assert abs(float(found.speed[0]) - 1.1) < 0.05
    assert abs(float(found.width) - 0.6) < 0.05
