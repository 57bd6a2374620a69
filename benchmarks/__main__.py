"""`make bench`: run the benchmarks, print the ratios, write docs/results/core-benchmarks.json."""

import json
import platform
from pathlib import Path

import jax

from benchmarks import core

OUTPUT = Path(__file__).parents[1] / "docs" / "results" / "core-benchmarks.json"


def main() -> None:
    """Run everything, one thing at a time."""
    results = {
        "machine": {
            "cpu": platform.processor() or platform.machine(),
            "devices": len(jax.devices()),
            "jax": jax.__version__,
        },
        "overhead": core.overhead(),
        "convolution": core.convolution(),
    }
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(results, indent=2) + "\n")
    for what in ("forward", "gradient"):
        print(f"charax / bare diffrax, {what}: {results['overhead'][what]['ratio']:.3f} (at most 1.05)")
    print(f"lax.conv / our convolution, gradient in a scan: {results['convolution']['ratio']:.1f} (at least 20)")


if __name__ == "__main__":
    main()
