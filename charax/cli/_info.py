"""`charax info`: what this installation computes with, and where."""

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

from charax._version import __version__
from charax.cli._print import Json, print_answer

_PACKAGES = ("jax", "jaxlib", "equinox", "diffrax", "optax", "numpy", "scikit-learn", "orbax-checkpoint")
_THREADS = ("NPROC", "OMP_NUM_THREADS", "XLA_FLAGS", "JAX_PLATFORMS", "CUDA_VISIBLE_DEVICES")


def info(*, as_json: Json = False) -> None:
    """Print versions, devices, folders and threads: what to add to a report of a problem."""
    facts = collect()
    devices = ", ".join(f"{each['kind']} ({each['platform']})" for each in facts["devices"])
    set_ = ", ".join(f"{name}={value}" for name, value in facts["variables"].items()) or "none"
    rows = [
        ["charax", facts["charax"]],
        ["Python", f"{facts['python']}, {facts['system']}"],
        *([name, version or "not installed"] for name, version in facts["packages"].items()),
        ["devices", devices],
        ["cores", f"{facts['cores']} of {facts['machine_cores']}"],
        ["variables", set_],
        ["compiled programs", facts["compilation_cache"]],
        ["own data", facts["data_folder"] or "CHARAX_DATA is not set"],
        ["downloads", facts["download_folder"]],
    ]
    print_answer(facts, ["", "value"], rows, title="", text_columns=2, as_json=as_json)


def collect() -> dict[str, Any]:
    """The facts by name; paths are text, and what is not installed or not set is None."""
    import jax
    import pooch

    from charax.train import use_compilation_cache

    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "charax": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "devices": [{"platform": device.platform, "kind": device.device_kind} for device in jax.devices()],
        "cores": own,
        "machine_cores": os.cpu_count(),
        "variables": {name: os.environ[name] for name in _THREADS if name in os.environ},
        "compilation_cache": str(use_compilation_cache(dict(os.environ))),
        "data_folder": os.environ.get("CHARAX_DATA"),
        "download_folder": str(Path(pooch.os_cache("charax"))),
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
