"""Classify irises, and let cross-validation choose the method: a C-NODE as any other scikit-learn classifier.

python examples/estimators_classify.py
"""

# %% Rows of numbers and their classes
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, train_test_split

from charax.estimators import CNODEClassifier

X, y = load_iris(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %% Nothing needs to be tuned; columns are standardised inside
classifier = CNODEClassifier(random_state=0).fit(X_train, y_train)
accuracy = classifier.score(X_test, y_test)
print(f"accuracy {accuracy:.3f} after {classifier.n_iter_} epochs")

# %% The paper's words are the parameters, so a search can go over them
grid = {"method": ["node", "c-node"]}
search = GridSearchCV(CNODEClassifier(members=2, max_iter=50, random_state=0), grid, cv=2)
search.fit(X_train, y_train)
print("cross-validation chose", search.best_params_)
