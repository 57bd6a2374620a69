import jax
import pytest


@pytest.fixture(autouse=True)
def float64():
    """The claims of this room are about float64; the other rooms' tests stay in float32."""
    with jax.enable_x64(True):
        yield
