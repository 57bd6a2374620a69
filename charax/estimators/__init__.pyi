from ._characteristic import CharacteristicRegressor as CharacteristicRegressor
from ._classifier import CNODEClassifier as CNODEClassifier
from ._density import FlowDensity as FlowDensity
from ._flow_regressor import FlowRegressor as FlowRegressor
from ._pairs import MatchingRegressor as MatchingRegressor
from ._pairs import match_pairs as match_pairs
from ._regressor import CNODERegressor as CNODERegressor
from ._series_classifier import SeriesClassifier as SeriesClassifier
