from . import actor as actor
from . import actor_reports as actor_reports
from . import checkpoint_manifest as checkpoint_manifest
from . import evaluator as evaluator
from . import learner as learner
from . import run_measurements as run_measurements
from . import run_tables as run_tables
