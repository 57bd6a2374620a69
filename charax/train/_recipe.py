"""The recipe for tables: sizes and training chosen from the number of rows."""

from dataclasses import replace
from math import sqrt
from typing import Any, NamedTuple, TypeVar

from charax.train._checks import fill
from charax.train._config import LoopConfig, OptimizerConfig, SolverConfig

ConfigT = TypeVar("ConfigT", bound=Any)
_ROWS_SEEN = 2_000_000
"""Rows that all members together look at in training, each of them once per epoch."""
_WEIGHT_DECAY = 2.0
_FEWEST_PASSES, _MOST_PASSES = 10, 1_000
"""How often they look at each of the rows."""
_SMALL = 2_000
"""Rows up to which nothing but the average over many models is needed."""
_AVERAGE = 0.995
"""Selected like the weight decay on the validation rows of docs/results/table-recipe: the learning rate is constant,
and the average over the last few hundred steps takes the noise away that it leaves."""


class TableRecipe(NamedTuple):
    """How to learn from a table when nothing else is said.

    ```python
    from charax.train import TableRecipe

    recipe = TableRecipe(members=4, batch_size=64, epochs=50, patience=10)
    assert recipe.loop.epochs == 50 and recipe.optimizer.schedule == "constant"
    ```
    """

    members: int
    """Models whose predictions are averaged."""
    batch_size: int
    """Rows per mini-batch."""
    epochs: int
    """Maximum number of epochs."""
    patience: int
    """Epochs without improvement of the validation loss after which training stops."""
    width: int = 32
    """Width of the networks."""
    steps: int = 2
    """Fixed steps of the midpoint method."""
    learning_rate: float = 1e-2
    """Learning rate of AdamW, which is constant."""
    weight_decay: float = _WEIGHT_DECAY
    """Decoupled weight decay of AdamW."""
    ema: float | None = None
    """Decay of the average of the weights that is evaluated; None for no average."""

    @property
    def loop(self) -> LoopConfig:
        """The training loop."""
        return LoopConfig(self.epochs, self.batch_size, patience=self.patience)

    @property
    def optimizer(self) -> OptimizerConfig:
        """The optimizer."""
        return OptimizerConfig(self.learning_rate, self.weight_decay, "constant", ema=self.ema)

    @property
    def solver(self) -> SolverConfig:
        """How to integrate."""
        return SolverConfig("midpoint", steps=self.steps)


def table_recipe(rows: int) -> TableRecipe:
    """Choose how to learn from a table: the one recipe of `charax train` and of the estimators.

    Up to 2,000 rows there are 10 models and 100 epochs, because there the average of several models is what helps most.
    Beyond, the weights of each are averaged over the steps, and models and epochs become fewer, so that the time grows
    little until 200,000 rows have one model and 10 epochs.

    Args:
        rows: The number of rows to learn from.

    Returns:
        The recipe.

    ```python
    from charax.train import table_recipe

    assert table_recipe(100).members > table_recipe(100_000).members
    ```
    """
    passes = min(max(_ROWS_SEEN / rows, _FEWEST_PASSES), _MOST_PASSES)
    members = min(max(round(sqrt(passes / 10)), 1), 10)
    epochs = round(passes / members)
    return TableRecipe(
        members,
        batch_size=min(256, rows),
        epochs=epochs,
        patience=max(5, epochs // 5),
        weight_decay=_WEIGHT_DECAY * min(1, _SMALL / rows),  # the more rows, the less there is to regularize
        ema=_AVERAGE if rows > _SMALL else None,
    )


def complete_for_table(config: ConfigT, rows: int) -> tuple[ConfigT, tuple[str, ...]]:
    """Fill in what a config leaves open, by the recipe for tables.

    Args:
        config: A config with the fields members, width, solver, loop and optimizer.
        rows: The number of rows to learn from.

    Returns:
        The config without gaps, and one line that says what was chosen and how to choose otherwise.

    ```python
    import charax
    from charax.train import complete_for_table

    config, notes = complete_for_table(charax.RegressionConfig(width=16), rows=500)
    assert (config.width, config.members) == (16, 10)
    assert notes[0].startswith("500 training rows: the mean of 10 models of width 16")
    ```
    """
    recipe, given = table_recipe(rows), config
    members: int = recipe.members if given.members is None else given.members
    width: int = recipe.width if given.width is None else given.width
    loop = fill(given.loop, recipe.loop)
    chosen = replace(
        given,
        members=members,
        width=width,
        solver=recipe.solver if given.solver == SolverConfig() else given.solver,
        loop=loop,
        optimizer=fill(given.optimizer, recipe.optimizer),
    )
    models = "one model" if members == 1 else f"the mean of {members} models"
    note = (
        f"{rows:,} training rows: {models} of width {width}, mini-batches of {loop.batch_size}, at most {loop.epochs} "
        f"epochs, until the validation loss has not improved for {loop.patience} (--members, --width, --batch-size, "
        "--epochs and --patience choose otherwise)"
    )
    return chosen, (note,)
