"""Several classifiers of one architecture, with weights of their own."""

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import describe_field
from charax.models._classifier import Classifier
from charax.nn import summarize
from charax.nn._parameters import count
from charax.solve import Solution, Solver


class ClassifierEnsemble(eqx.Module):
    """Classifiers of one architecture, each with weights of its own. They are trained side by side.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import ClassifierEnsemble, VectorArchitecture

    build = lambda key: VectorArchitecture("node", width=4).build((3,), 2, key=key)
    ensemble = ClassifierEnsemble.build(build, 5, key=jax.random.key(0))
    outputs, _ = ensemble(jnp.ones((7, 3)))
    assert outputs.shape == (5, 7, 2)
    ```
    """

    members: Classifier
    """The members as one module, whose arrays have the members in their first axis."""
    size: int = eqx.field(static=True)
    """The number of members."""

    def __repr__(self) -> str:
        return summarize(self, count(self.size, "member"), describe_field(self.members.ode.field))

    @classmethod
    def build(
        cls, build: Callable[[PRNGKeyArray], Classifier], size: int, *, key: PRNGKeyArray
    ) -> "ClassifierEnsemble":
        """Initialize the members.

        Args:
            build: Makes one member from a random key.
            size: The number of members.
            key: Random key of the initial weights.

        Returns:
            The ensemble.
        """
        return cls(eqx.filter_vmap(build)(jax.random.split(key, size)), size)

    def member(self, index: int) -> Classifier:
        """Select a member.

        Args:
            index: Its number, from 0.

        Returns:
            The classifier.
        """
        arrays, static = eqx.partition(self.members, eqx.is_array)
        return eqx.combine(jax.tree.map(lambda leaf: leaf[index], arrays), static)

    def __call__(
        self, data: Float[Array, "batch *data"], *, solver: Solver | None = None
    ) -> tuple[Float[Array, "members batch outputs"], Solution]:
        """Compute the outputs of every member.

        Args:
            data: A batch of inputs.
            solver: How to integrate; `Solver()` by default.

        Returns:
            The outputs, and the solution of the first member, with the worst outcome and the largest counts of all.
        """
        outputs, solutions = eqx.filter_vmap(lambda member: member(data, solver=solver))(self.members)
        first = jax.tree.map(lambda leaf: leaf[0], solutions)
        largest = lambda tree: jax.tree.map(lambda leaf: leaf.max(axis=0), tree)
        return outputs, replace(first, outcome=largest(solutions.outcome), stats=largest(solutions.stats))


def first_member(model: Classifier | ClassifierEnsemble) -> Classifier:
    """Select the first member of an ensemble; a single classifier is an ensemble of one.

    Args:
        model: The classifier or the ensemble.

    Returns:
        The classifier.

    ```python
    import jax
    from charax.models import VectorArchitecture, first_member

    model = VectorArchitecture("node", width=4).build((3,), 2, key=jax.random.key(0))
    assert first_member(model) is model
    ```
    """
    return model.member(0) if isinstance(model, ClassifierEnsemble) else model


def member_outputs(
    model: Classifier | ClassifierEnsemble, data: Float[Array, "batch *data"], *, solver: Solver | None = None
) -> tuple[Float[Array, "members batch outputs"], Solution]:
    """Compute the outputs of every member of an ensemble; a single classifier is an ensemble of one.

    Args:
        model: The classifier or the ensemble.
        data: A batch of inputs.
        solver: How to integrate; `Solver()` by default.

    Returns:
        The outputs, with the members in the first axis, and the solution with its counts.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import VectorArchitecture, member_outputs

    model = VectorArchitecture("node", width=4).build((3,), 2, key=jax.random.key(0))
    assert member_outputs(model, jnp.ones((7, 3)))[0].shape == (1, 7, 2)
    ```
    """
    if isinstance(model, ClassifierEnsemble):
        return model(data, solver=solver)
    outputs, solution = model(data, solver=solver)
    return outputs[None], solution
