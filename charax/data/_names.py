"""Names that appear in configs. This module imports nothing heavy, so that a command line can read it without NumPy."""

from typing import Literal

Augmentation = Literal["none", "flip-crop", "affine"]
"""How training images are augmented: not, by `random_flip_crop`, or by `random_affine`."""
HoldOut = Literal["times", "series"]
"""What the test split of a forecaster consists of: the last times of every series, or whole series."""
TimeKind = Literal["number", "date"]
"""What the times of series are: numbers of any unit, or dates."""
Transform = Literal["identity", "sqrt", "log"]
"""What is applied to positive values before they are scaled."""
TransformChoice = Literal["auto", "identity", "sqrt", "log"]
"""The same, or whichever has the least error on validation data."""
