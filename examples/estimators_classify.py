"""Classify irises with a C-NODE, and select the method by cross-validation.

python examples/estimators_classify.py
"""

# %% The data
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, train_test_split

from charax.estimators import CNODEClassifier

X, y = load_iris(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %% Fit with the default parameters; features are standardized by the estimator
classifier = CNODEClassifier(random_state=0).fit(X_train, y_train)
accuracy = classifier.score(X_test, y_test)
print(f"accuracy {accuracy:.3f} after {classifier.n_iter_} epochs")

# %% Search over the paper's methods
grid = {"method": ["node", "c-node"]}
search = GridSearchCV(CNODEClassifier(members=2, max_iter=50, random_state=0), grid, cv=2)
search.fit(X_train, y_train)
print("best parameters:", search.best_params_)
