"""Learn the density of two moons, sample from it, and find outliers.

python examples/estimators_density.py
"""

# %% Points in the plane
import numpy as np
from sklearn.datasets import make_moons

from charax.estimators import FlowDensity

X, _ = make_moons(600, noise=0.08, random_state=0)

# %% A flow carries them to a normal distribution, and so knows their density
density = FlowDensity(random_state=0).fit(X[:500])
mean_log_density = density.score(X[500:])
print(f"mean log-density of new points {mean_log_density:.2f} after {density.n_iter_} epochs")

# %% New points, and one that is none of these
drawn = density.sample(5, random_state=0)
print("drawn:", np.round(drawn, 2).tolist())
between = density.score_samples([[0.5, 1.0], [0.5, 0.25]])
print("log-density on a moon and between the moons:", np.round(between, 2).tolist())
