"""Settings of the process and of the compiler."""

import jax
import jax.export
import jax.numpy as jnp
import jaxlib.version
import pytest
from jax.experimental.compilation_cache import compilation_cache

from charax.nn import convolve
from charax.train import _process, quick_compilation, small_products, tune_process, use_compilation_cache
from charax.train._process import keep_freed_memory


@pytest.mark.parametrize("variable", ["GLIBC_TUNABLES", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_"])
def test_what_the_user_set_for_malloc_is_left_alone(monkeypatch, variable):
    monkeypatch.setenv(variable, "2")
    assert not keep_freed_memory()


def test_compiled_programs_are_kept_where_the_user_wants_them(tmp_path):
    assert use_compilation_cache({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "charax" / "jax"
    variables = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "mine")}
    assert use_compilation_cache(variables) == tmp_path / "mine"
    assert variables["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] == "0.2"


def test_compiled_programs_are_kept_even_if_jax_is_there_and_has_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        jax.jit(lambda x: x * 2.5)(jnp.ones(3))
        use_compilation_cache()
        jax.jit(lambda x: jnp.sin(x) * 3.25)(jnp.ones(3))
        assert any((tmp_path / "kept").iterdir())
    finally:
        jax.config.update("jax_compilation_cache_dir", before[0])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", before[1])
        compilation_cache.reset_cache()


@pytest.mark.skipif(not jaxlib.version.__version__.startswith("0.10."), reason="others do not choose YNNPACK")
def test_small_products_are_eigens():
    operands = jnp.ones((512, 64)), jnp.ones((64, 64))
    compiled = lambda options: str(jax.jit(jnp.matmul, compiler_options=options).lower(*operands).compile().as_text())
    assert "ynn" in compiled(None)
    assert "ynn" not in compiled(small_products())


def test_no_option_is_given_to_a_jaxlib_it_was_not_tried_with(monkeypatch):
    monkeypatch.setattr("jaxlib.version.__version__", "0.99.0")
    assert small_products() == {}


@pytest.mark.parametrize(("platforms", "expected"), [("cuda,cpu", False), ("tpu", False), ("cpu", True), ("", True)])
def test_malloc_is_tuned_on_cpus_only(monkeypatch, platforms, expected):
    asked = []
    monkeypatch.setenv("JAX_PLATFORMS", platforms)
    monkeypatch.setattr(_process, "keep_freed_memory", lambda: asked.append(1))
    monkeypatch.setattr(_process, "entry_points", lambda group: ())
    tune_process()
    assert bool(asked) == expected


def test_malloc_is_left_alone_where_a_plugin_for_gpus_is_installed(monkeypatch):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr(_process, "entry_points", lambda group: [group])
    assert not _process.computes_on_cpu()


def test_compiler_options_are_for_cpus_only(monkeypatch):
    assert quick_compilation()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert small_products() == quick_compilation() == {}


def test_convolutions_are_rewritten_on_cpus_only():
    image, kernel = jnp.zeros((64, 16, 16, 32)), jnp.zeros((3, 3, 32, 32))
    gradient = jax.jit(jax.grad(lambda kernel: convolve(image, kernel).sum()))
    program = lambda platform: jax.export.export(gradient, platforms=[platform])(kernel).mlir_module()
    assert "stablehlo.convolution" in program("cuda")
    assert "stablehlo.convolution" not in program("cpu")
