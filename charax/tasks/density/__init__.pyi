from ._config import DensityConfig as DensityConfig
from ._objective import MatchingDesign as MatchingDesign
from ._spec import DensityBatch as DensityBatch
from ._spec import DensitySpec as DensitySpec
from ._task import DensityTask as DensityTask
from ._transport import TransportSpec as TransportSpec
from ._transport import TransportTask as TransportTask
