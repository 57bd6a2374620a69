"""One function per picture."""

from charax.plots.characteristics import plot_characteristics

__all__ = ["plot_characteristics"]
