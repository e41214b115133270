from . import estimators as estimators
from . import evaluation as evaluation
from . import logged_data as logged_data
from .evaluation import Evaluation as Evaluation
from .evaluation import evaluate as evaluate
from .logged_data import LoggedData as LoggedData
