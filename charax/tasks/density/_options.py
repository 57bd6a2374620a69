"""Options of the compiler for flows of a few columns."""

from charax.train import quick_compilation, small_products


def vector_options() -> dict[str, bool | int | str]:
    """They train and are plotted for about as long as they compile, and their products are small."""
    return {**quick_compilation(), **small_products()}
