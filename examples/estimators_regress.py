"""Predict the progression of diabetes with an ensemble of C-NODEs, with and without sample weights.

python examples/estimators_regress.py
"""

# %% Ten measurements of 442 patients
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from charax.estimators import CNODERegressor

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %% Ten members are trained in parallel, each with different validation rows
regressor = CNODERegressor(random_state=0).fit(X_train, y_train)
r_squared = regressor.score(X_test, y_test)
print(f"R² {r_squared:.3f} after {regressor.n_iter_} epochs")

# %% Give the patients with the fastest progression four times the weight
weights = np.where(y_train > np.median(y_train), 4, 1)
weighted = CNODERegressor(random_state=0).fit(X_train, y_train, sample_weight=weights)
shift = (weighted.predict(X_test) - regressor.predict(X_test)).mean()
print(f"predictions rise by {shift:.1f} on average")
