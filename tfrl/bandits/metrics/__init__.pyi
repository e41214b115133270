from . import tf_metrics as tf_metrics
from .tf_metrics import ConstraintViolationsMetric as ConstraintViolationsMetric
from .tf_metrics import CumulativeRegretMetric as CumulativeRegretMetric
from .tf_metrics import DistanceFromGreedyMetric as DistanceFromGreedyMetric
from .tf_metrics import RegretMetric as RegretMetric
from .tf_metrics import SuboptimalArmsMetric as SuboptimalArmsMetric
