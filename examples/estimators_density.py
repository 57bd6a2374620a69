"""Estimate the density of two moons, sample from it, and score points on and off the moons.

python examples/estimators_density.py
"""

# %% The data
import numpy as np
from sklearn.datasets import make_moons

from charax.estimators import FlowDensity

X, _ = make_moons(600, noise=0.08, random_state=0)

# %% Fit a continuous normalizing flow
density = FlowDensity(random_state=0).fit(X[:500])
mean_log_density = density.score(X[500:])
print(f"mean log-density of held-out points {mean_log_density:.2f} after {density.n_iter_} epochs")

# %% Draw samples, and score a point on a moon and one between the moons
samples = density.sample(5, random_state=0)
print("samples:", np.round(samples, 2).tolist())
scores = density.score_samples([[0.5, 1.0], [0.5, 0.25]])
print("log-density on a moon and between the moons:", np.round(scores, 2).tolist())
