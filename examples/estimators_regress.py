"""Predict how diabetes progresses: a C-NODE as any other scikit-learn regressor.

python examples/estimators_regress.py
"""

# %% Ten measurements of 442 people
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from charax.estimators import CNODERegressor

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %% A few models learn side by side, each held to account by other people
regressor = CNODERegressor(random_state=0).fit(X_train, y_train)
r_squared = regressor.score(X_test, y_test)
print(f"R² {r_squared:.3f} after {regressor.n_iter_} epochs")

# %% Rows can count more than others: here those in which it progressed most
careful = CNODERegressor(random_state=0).fit(
    X_train, y_train, sample_weight=np.where(y_train > np.median(y_train), 4, 1)
)
shift = (careful.predict(X_test) - regressor.predict(X_test)).mean()
print(f"predictions rise by {shift:.1f} on average")
