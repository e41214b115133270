"""Tuning: Optuna draws settings, and runs of an algorithm measure them.

`tune` is `tfrl.tune`; `search` defines the values that it searches.

>>> import tfrl
>>> from tfrl.experiments.tuning import search
>>> found = search.fields(tfrl.DQN, {"gamma": None, "batch_size": "32..256"})
>>> {name: search.text(each) for name, each in found.items()}
{'batch_size': '32..256', 'gamma': '0.9,0.95,0.98,0.99,0.995,0.999,0.9999'}
"""
