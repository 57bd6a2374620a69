from ._intervals import Interval as Interval
from ._intervals import metric_intervals as metric_intervals
from ._page import write_report as write_report
