"""The same models on PyTorch, in an environment of their own, driven as a subprocess."""
