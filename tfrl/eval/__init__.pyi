from . import elo as elo
from . import evaluate as evaluate
from . import metric_utils as metric_utils
from . import rank_tests as rank_tests
from . import statistics as statistics
from .evaluate import EvaluationResult as EvaluationResult
from .evaluate import Evaluator as Evaluator
