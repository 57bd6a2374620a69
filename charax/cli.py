"""`charax …`: parse, call, and tell. Everything else is in the library."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table
from tyro.extras import SubcommandApp

Json = Annotated[bool, tyro.conf.arg(name="json", help="Print one JSON object on standard output instead of a table.")]

app = SubcommandApp()
reproduce = SubcommandApp()
app.command(reproduce, name="reproduce")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0 for success, 2 for bad usage or input, 1 for anything else."""
    # Compiled programs are kept from one command to the next; JAX's own variable moves the place.
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "charax" / "jax"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    try:
        app.cli(
            prog="charax",
            description="Characteristic Neural ODEs.",
            args=arguments,
            config=(tyro.conf.FlagCreatePairsOff,),
        )
    except (ValueError, OSError) as error:
        return _fail(error, 2)
    except RuntimeError as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    return 0


def _fail(reason: object, status: int) -> int:
    Console(stderr=True).print(f"charax: {reason}", style="red", markup=False, highlight=False)
    return status


def _tell(answer: Mapping[str, Any], table: Table, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(answer) + "\n")
    else:
        Console().print(table)


@app.command
def models(*, as_json: Json = False) -> None:
    """The paper's image classifiers with their parameter counts beside the paper's."""
    from charax.models import count_table

    rows = count_table()
    table = Table("data set", "method", title="Image classifiers of the paper's Table 1")
    for column in ("parameters", "in the paper", "difference"):
        table.add_column(column, justify="right")
    for dataset, method, ours, paper in rows:
        difference = "equal" if ours == paper else f"{ours / paper - 1:+.1%}"
        table.add_row(dataset, method, f"{ours:,}", f"{paper:,}", difference)
    table.caption = "SVHN's models have CIFAR-10's layers. The second-order ones are truly second order here."
    _tell({"rows": [row._asdict() for row in rows]}, table, as_json=as_json)


@reproduce.command(name="propositions")
def reproduce_propositions(*, seed: int = 0, output: Path = Path("runs/propositions"), as_json: Json = False) -> None:
    """The paper's propositions in numbers, with a picture each.

    Args:
        seed: Seed of every random number.
        output: Folder for the pictures and the numbers.
    """
    from charax.experiments import propositions
    from charax.plots import draw_propositions

    output.mkdir(parents=True, exist_ok=True)  # before the work, so that a bad path is known at once
    result = propositions.run(seed=seed)
    answer = result.to_json()
    pictures = draw_propositions(result, output)
    (output / "propositions.json").write_text(json.dumps(answer, indent=2) + "\n")
    table = Table("proposition", "measured", title="The paper's propositions")
    table.add_column("value", justify="right")
    for proposition, numbers in answer.items():
        for i, (name, value) in enumerate((name, value) for name, value in numbers.items() if name != "refusal"):
            shown = f"{value:,}" if isinstance(value, int) else f"{value:.1e}"
            table.add_row("" if i else proposition.replace("_", " "), name.replace("_", " "), shown)
    table.caption = f"Pictures: {', '.join(str(picture) for picture in pictures)}"
    _tell(answer, table, as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
