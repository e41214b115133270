"""Reports of runs, with findings about runs that may not learn.

>>> from tfrl.reports import evidence, health
>>> rows = [{"iteration": i, "dormant_units": 0.9} for i in range(8)]
>>> (finding,) = health.check(evidence.Evidence(rows, {}))
>>> finding.rule, finding.value
('units', 0.9)
"""
