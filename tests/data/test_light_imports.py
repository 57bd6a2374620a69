"""Names for command lines and loaded tables must not cost the import of JAX or of a data library."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys, types

package = types.ModuleType("charax")  # without what the package itself imports
package.__path__ = [sys.argv[1]]
sys.modules["charax"] = package
from charax import data

for name in data.__all__:
    if name not in ("random_affine", "random_flip_crop"):  # the two that compute with JAX
        getattr(data, name)
data.load_density_data("moons", points=100)
data.load_series("paper")
data.load_dataset("digits")
heavy = [name for name in ("jax", "equinox", "sklearn", "scipy", "pandas", "PIL", "pooch") if name in sys.modules]
assert not heavy, heavy
"""


def test_the_package_is_imported_and_its_names_are_known_without_heavy_libraries():
    folder = Path(__file__).resolve().parents[2] / "charax"
    subprocess.run([sys.executable, "-c", PROGRAM, str(folder)], check=True)
