"""Results that are stored with their settings, so that an interrupted experiment resumes and never mixes settings."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def load_or_compute(path: Path, settings: Mapping[str, Any], compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The stored result, or a new one, which is stored.

    Args:
        path: The JSON file of the result.
        settings: What the result depends on, as plain JSON.
        compute: Computes the result.

    Returns:
        The result.

    Raises:
        ValueError: If the file has the result of other settings; the message names them.
    """
    from charax.train._checkpoints import write_json  # which imports JAX
    from charax.train._json import read_json

    wanted = json.loads(json.dumps(settings))
    if path.exists():
        stored = read_json(path, missing="it was deleted just now")
        found = stored.get("settings")
        if not isinstance(found, dict) or not isinstance(stored.get("result"), dict):
            raise ValueError(f"{path} is not a stored result: delete it")
        names = [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]
        if names:
            different = ", ".join(f"{name} ({found.get(name)} there, {wanted.get(name)} here)" for name in names)
            raise ValueError(
                f"{path} is the result of other settings: {different}. Give another --output, or delete that file"
            )
        return stored["result"]
    path.parent.mkdir(parents=True, exist_ok=True)  # before the work, so that a bad path is known at once
    result = compute()
    write_json(path, {"settings": wanted, "result": result})
    return result
