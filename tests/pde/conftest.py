import jax
import pytest


@pytest.fixture(autouse=True)
def float64():
    """The claims of this package are about float64."""
    with jax.enable_x64(True):
        yield
