"""Terms of an equation as text: products of x, t and u and their functions, such as `u**2` or `u*sin(x)`."""

import ast
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

Evaluate = Callable[[Mapping[str, Any]], Any]
"""From the variables by name to the value of a term; NumPy's arrays give NumPy's."""

_FUNCTIONS = ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt", "abs")
_OPERATIONS: Mapping[type, Callable] = MappingProxyType(
    {
        ast.Add: lambda a, b: a + b,
        ast.Sub: lambda a, b: a - b,
        ast.Mult: lambda a, b: a * b,
        ast.Div: lambda a, b: a / b,
        ast.Pow: lambda a, b: a**b,
    }
)


def parse_term(text: str, variables: tuple[str, ...]) -> Evaluate:
    """Make a function of a formula. Only arithmetic, variables and a few functions are understood: nothing is executed.

    ```python
    import jax.numpy as jnp
    from charax.models import parse_term

    term = parse_term("u**2 * sin(x)", ("x", "u"))
    assert term({"x": jnp.array(0.0), "u": jnp.array(3.0)}) == 0
    ```

    Args:
        text: The formula, in Python's notation; `^` is a power, too.
        variables: The names that it may contain.

    Returns:
        A function of the variables by name.

    Raises:
        ValueError: If the formula cannot be read, or has another name in it.
    """
    return _parse(text, tuple(variables))


@lru_cache(maxsize=1024)
def _parse(text: str, variables: tuple[str, ...]) -> Evaluate:
    try:
        tree = ast.parse(text.replace("^", "**").strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(f"the term {text!r} is not a formula; write it as u**2 or u*sin(x)") from None
    check = lambda node: _evaluate(node, dict.fromkeys(variables, np.ones(())), text, variables)
    check(tree)
    return lambda values: _evaluate(tree, values, text, variables)


def _evaluate(node: ast.expr, values: Mapping[str, Any], text: str, variables: tuple[str, ...]) -> Any:
    descend = lambda child: _evaluate(child, values, text, variables)
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if name in variables:
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -descend(operand)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS:
            return _OPERATIONS[type(operation)](descend(left), descend(right))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _FUNCTIONS:
            value = descend(argument)
            return getattr(jnp if isinstance(value, Array) else np, name)(value)
    raise ValueError(
        f"the term {text!r} may have numbers, {', '.join(variables)}, + - * / ** and {', '.join(_FUNCTIONS)} of one "
        f"argument; it has {ast.unparse(node)!r}"
    )


def measure_complexity(text: str) -> int:
    """How much there is to write: a variable counts 1, as does each multiplication, also of a power; a function 3."""
    total = 0
    for node in ast.walk(ast.parse(text.replace("^", "**").strip(), mode="eval")):
        match node:
            case ast.Call():
                total += 2  # and its name as a variable
            case ast.Name():
                total += 1
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int() | float() as power)):
                total += max(round(abs(power)) - 1, 1)
            case ast.BinOp():
                total += 1
    return total


def default_terms(variables: Sequence[str], *, period: Mapping[str, float] = MappingProxyType({})) -> tuple[str, ...]:
    """List the terms that an equation is searched in: polynomials, products, sines.

    ```python
    from charax.models import default_terms

    assert default_terms(("u",)) == ("1", "u", "u**2", "u**3", "sin(u)")
    ```

    Args:
        variables: What a coefficient depends on, such as x, t and u.
        period: The period of some of them, which have waves of that length only.

    Returns:
        Powers up to the third, products of two variables, and the sine; the cosine, too, of positions and times.
    """
    free = [name for name in variables if name not in period]
    products = [f"{a}*{b}" for a, b in itertools.combinations(free, 2)]
    waves = [f"sin({name})" for name in free] + [f"cos({name})" for name in free if name[0] != "u"]
    for name, length in period.items():
        phase = name if math.isclose(length, 2 * math.pi, rel_tol=1e-4) else f"{2 * math.pi / length:.6g}*{name}"
        waves += [f"sin({phase})", f"cos({phase})"] if name in variables else []
    powers = [f"{name}**{power}" for power in (2, 3) for name in free]
    return ("1", *free, *powers, *products, *waves)


def flux_terms() -> tuple[str, ...]:
    """List the terms that the flux f(u) of a conservation law is searched in: the integrals of `default_terms`.

    ```python
    from charax.models import flux_terms

    assert flux_terms()[:2] == ("u", "u**2")
    ```

    Returns:
        Powers from the first to the fourth, and the cosine.
    """
    return ("u", "u**2", "u**3", "u**4", "cos(u)")
