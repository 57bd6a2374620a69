from ._criteria import Criterion as Criterion
from ._criteria import aic as aic
from ._criteria import bic as bic
from ._criteria import pick as pick
from ._sweep import Candidate as Candidate
from ._sweep import Selection as Selection
from ._sweep import select_dimension as select_dimension
