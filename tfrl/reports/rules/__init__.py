"""The rules of `tfrl.reports.health`, in modules by what they look at.

>>> from tfrl.reports import evidence, health
>>> health.check(evidence.Evidence(rows=[], settings={}))
[]
"""
