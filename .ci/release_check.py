"""What a user of the wheel does first: look at the metadata, run README's first example, train a classifier.

`make release-check` runs this in a clean environment that has the wheel and nothing else of the repository.
"""

import importlib.metadata
import re
import subprocess
import sys
import tempfile
from pathlib import Path

readme = Path(sys.argv[1]).resolve().read_text()
with tempfile.TemporaryDirectory() as folder:
    import charax

    assert "site-packages" in charax.__file__, f"the repository was imported instead of the wheel: {charax.__file__}"
    metadata = importlib.metadata.metadata("charax")
    assert metadata["Version"] == charax.__version__, (metadata["Version"], charax.__version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# charax")
    files = {str(path) for path in importlib.metadata.files("charax") or ()}
    needed = {"charax/py.typed", "charax/__init__.pyi", "charax/report/assets/page.js", "charax/report/assets/page.css"}
    assert files >= needed, f"the wheel lacks {needed - files}"
    stray = sorted(path for path in files if not path.startswith(("charax", "../../../bin")))
    assert not stray, f"the wheel has files that are not the package's: {stray[:3]}"

    (first, *_) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    exec(compile(first, "README.md", "exec"), {})
    command = [str(Path(sys.executable).parent / "charax"), "train", "classify", "--epochs", "1", "--name", "one"]
    subprocess.run(command, cwd=folder, check=True)
    assert (Path(folder) / "runs" / "one" / "model.safetensors").exists()
print(f"charax {charax.__version__} can be released")
