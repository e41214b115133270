from . import comparison as comparison
from . import evidence as evidence
from . import health as health
from . import plots as plots
from . import report as report
