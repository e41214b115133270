"""Reports of runs: comparisons, figures, and findings about runs that may not learn.

>>> from tfrl.reports import evidence, health
>>> rows = [{"iteration": i, "dormant_units": 0.9} for i in range(8)]
>>> (finding,) = health.check(evidence.Evidence(rows, {}))
>>> finding.rule, finding.value
('units', 0.9)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
