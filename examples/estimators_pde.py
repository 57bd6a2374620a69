"""Learn a moving wave from scattered samples: columns x and t in, u out.

python examples/estimators_pde.py
"""

# %% A pulse that moves to the right, seen at 300 places and times
import numpy as np

from charax.estimators import CharacteristicRegressor

generator = np.random.default_rng(0)
X = generator.uniform([-2.0, 0.0], [3.0, 1.0], (400, 2))
u = np.exp(-((X[:, 0] - 1.5 * X[:, 1]) ** 2))

# %% Values are carried along learned paths from where the paths start
regressor = CharacteristicRegressor(random_state=0).fit(X[:300], u[:300])
r_squared = regressor.score(X[300:], u[300:])
print(f"R² {r_squared:.4f} after {regressor.n_iter_} epochs")
