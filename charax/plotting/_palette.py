"""The colours of every figure, which are told apart without colour vision, too."""

NODE = "#d55e00"
"""Okabe and Ito's vermilion, for plain Neural ODEs."""
C_NODE = "#0072b2"
"""Okabe and Ito's blue, for C-NODEs and whatever was learned."""
EXACT = "#6b6b6b"
"""Grey, for exact values and data."""
FAIR_NODE = "#e69f00"
"""Okabe and Ito's orange, for a second plain Neural ODE."""

CLASSES = (
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#94a4a2",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#717581",
    "#92dadd",
)
"""Petroff's ten colours for classes and series."""


def method_color(method: str) -> str:
    """The colour of a method: one for Neural ODEs, also augmented or of second order, and one for C-NODEs.

    Args:
        method: The name of the method, as on the command line.

    Returns:
        The colour in hexadecimal digits.

    ```python
    from charax.plotting import C_NODE, method_color

    assert method_color("anode+c-node") == C_NODE != method_color("node")
    ```
    """
    is_plain = "c-node" not in method and ("node" in method or "2nd-order" in method)
    return NODE if is_plain else C_NODE
