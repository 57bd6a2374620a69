"""What every reproduction of a table or figure has in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from charax.paper._report import Figure, Report
from charax.train import Sweep


class AbstractExperiment(ABC):
    """A table or figure of the paper.

    A subclass is a frozen dataclass: its fields are the flags of `charax reproduce NAME`, its docstring is the help.

    ```python
    from dataclasses import dataclass
    from pathlib import Path

    from charax.paper import AbstractExperiment, Column, Report
    from charax.train import Sweep

    @dataclass(frozen=True)
    class Squares(AbstractExperiment):  # `charax reproduce squares --count 2`
        name = "squares"
        count: int = 3

        def run(self, folder, sweep):
            rows = [{"n": n, "square": n**2} for n in range(self.count)]
            return Report("squares", "Squares", [Column("n", "n"), Column("n²", "square")], {"rows": rows})

    assert Squares(count=2).run(Path("unused"), Sweep()).cells == [["0", "0"], ["1", "1"]]
    ```
    """

    name: ClassVar[str]
    """The word after `charax reproduce`."""

    @property
    def label(self) -> str:
        """The name of the default folder."""
        return self.name

    @abstractmethod
    def run(self, folder: Path, sweep: Sweep) -> Report:
        """Run the experiment, or resume it.

        Args:
            folder: Folder of the runs. Those that are there already are not repeated.
            sweep: Computes the runs, and reports.

        Returns:
            The results, which are not written yet.

        Raises:
            ValueError: If a setting cannot be used, or the folder has a run with other settings.
            SweepError: If some runs failed; the others are finished.
        """

    def figures(self, stored: Mapping[str, Any]) -> Mapping[str, Figure]:
        """Choose the figures whose numbers are all in the JSON file of a report.

        Args:
            stored: The content of NAME.json.

        Returns:
            The figures by file name; none by default.
        """
        return {}

    def redraw(self, folder: Path) -> list[Path]:
        """Draw the figures again: those of the table from its JSON file, those of single runs from their weights.

        Args:
            folder: The folder with NAME.json, and with those runs that have figures of their own.

        Returns:
            The figures.

        Raises:
            ValueError: If there is no such file, or it has not the numbers of any figure.
        """
        from charax.train import load_run
        from charax.train._json import read_json

        path = folder / f"{self.name}.json"
        try:
            figures = self.figures(read_json(path, missing="give the --output of an earlier run"))
        except KeyError as error:
            raise ValueError(f"{path} lacks {error}, which the figures need: leave --redraw out") from error
        if not figures:
            raise ValueError(f"the figures of {self.name} are drawn from its runs: leave --redraw out")
        runs = [load_run(plots.parent) for plots in sorted(folder.glob("*/plots"))]
        return [draw(folder / name) for name, draw in figures.items()] + [path for run in runs for path in run.plot()]


def choose(given: Sequence[str], known: Sequence[str], what: str, budget: str) -> tuple[str, ...]:
    """Restrict an experiment to some of its parts.

    Args:
        given: The parts that are asked for; all if empty.
        known: All parts.
        what: What they are, for the error.
        budget: The budget, for the error.

    Returns:
        The parts to run.

    Raises:
        ValueError: If one is unknown.
    """
    for name in given:
        if name not in known:
            raise ValueError(f"budget {budget} has no {what} {name!r}; choose from {', '.join(known)}")
    return tuple(given) or tuple(known)
