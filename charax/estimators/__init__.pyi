from ._characteristic import CharacteristicRegressor as CharacteristicRegressor
from ._classifier import CNODEClassifier as CNODEClassifier
from ._density import FlowDensity as FlowDensity
from ._regressor import CNODERegressor as CNODERegressor
