"""Results that are stored with their settings, so that an interrupted experiment resumes and never mixes settings."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from charax.train import AbstractJob, AbstractProgress


@dataclass(frozen=True)
class RecordJob(AbstractJob[dict[str, Any]]):
    """A result as a part of a sweep: settings, and a JSON file.

    ```python
    import tempfile
    from pathlib import Path

    from charax.paper._records import RecordJob
    from charax.train import Sweep

    def double(number, progress):
        return {"answer": 2 * number}

    with tempfile.TemporaryDirectory() as folder:
        job = RecordJob(Path(folder) / "two.json", {"number": 2}, double, {"number": 2})
        assert Sweep().run([job]) == [{"answer": 4}]
        assert job.is_finished()
    ```
    """

    place: Path
    """The JSON file of the result."""
    settings: Mapping[str, Any]
    """What the result depends on, as plain JSON."""
    function: Callable[..., dict[str, Any]]
    """Computes the result, from the arguments and a keyword `progress`; a function that other processes can import."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of the function."""

    def is_finished(self) -> bool:
        if not self.place.exists():
            return False
        self.load()
        return True

    def compute(self, progress: AbstractProgress) -> dict[str, Any]:
        from charax.train._checkpoints import write_json  # which imports JAX

        self.place.parent.mkdir(parents=True, exist_ok=True)  # before the work, so that a bad path is known at once
        result = self.function(**self.arguments, progress=progress)
        write_json(self.place, {"settings": self._wanted, "result": result})
        return result

    def load(self) -> dict[str, Any]:
        from charax.train._json import read_json

        stored, wanted = read_json(self.place, missing="it was deleted just now"), self._wanted
        found = stored.get("settings")
        if not isinstance(found, dict) or not isinstance(stored.get("result"), dict):
            raise ValueError(f"{self.place} is not a stored result: delete it")
        names = [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]
        if names:
            different = ", ".join(f"{name} ({found.get(name)} there, {wanted.get(name)} here)" for name in names)
            raise ValueError(
                f"{self.place} is the result of other settings: {different}. Give another --output, or delete that file"
            )
        return stored["result"]

    @property
    def _wanted(self) -> dict[str, Any]:
        return json.loads(json.dumps(self.settings))
