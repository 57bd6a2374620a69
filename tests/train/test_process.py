"""Settings of the process."""

import jax
import jax.numpy as jnp
import jaxlib.version
import pytest

from charax.train import _process as process
from charax.train import small_products


def test_what_the_user_set_for_malloc_is_left_alone(monkeypatch):
    monkeypatch.setenv("MALLOC_MMAP_MAX_", "2")
    assert not process._keep_freed_memory()


@pytest.mark.skipif(not jaxlib.version.__version__.startswith("0.10."), reason="others do not choose YNNPACK")
def test_small_products_are_eigens():
    operands = jnp.ones((512, 64)), jnp.ones((64, 64))
    compiled = lambda options: str(jax.jit(jnp.matmul, compiler_options=options).lower(*operands).compile().as_text())
    assert "ynn" in compiled(None)
    assert "ynn" not in compiled(small_products())


def test_no_option_is_given_to_a_jaxlib_it_was_not_tried_with(monkeypatch):
    monkeypatch.setattr("jaxlib.version.__version__", "0.99.0")
    assert small_products() == {}
