"""Learn a moving pulse from scattered samples: position x and time t as features, u as target.

python examples/estimators_pde.py
"""

# %% A pulse that moves to the right, sampled at 300 points (x, t) for training and 100 for testing
import numpy as np

from charax.estimators import CharacteristicRegressor

generator = np.random.default_rng(0)
X = generator.uniform([-2.0, 0.0], [3.0, 1.0], (400, 2))
u = np.exp(-((X[:, 0] - 1.5 * X[:, 1]) ** 2))

# %% Learn the characteristics and the derivatives of u along them
regressor = CharacteristicRegressor(random_state=0).fit(X[:300], u[:300])
r_squared = regressor.score(X[300:], u[300:])
print(f"R² {r_squared:.4f} after {regressor.n_iter_} epochs")
