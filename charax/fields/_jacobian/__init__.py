"""The Jacobian J = ∂u/∂x, one module per form.

The forms differ in how they satisfy the balance equations ∂²u/∂xᵢ∂xⱼ = ∂²u/∂xⱼ∂xᵢ; see `balance_residual`. A new form
that is built from a network is one module here and one line in `_registry.py`.
"""
