"""Runs of algorithms as commands train them: alone, many together, tuned, with actors.

- `single`: a run in its folder.
- `sweeps`, `one_program`: many runs, in one program where possible.
- `children`: runs in processes, which get their recipes as JSON.
- `tuning`: runs whose settings Optuna draws.
- `actors`, `distributed`: a run with actors and replay servers in processes.

>>> import tfrl
>>> from tfrl.algorithms.recipe import Recipe
>>> from tfrl.experiments import sweeps
>>> sweeps.why_in_processes(Recipe.of(tfrl.DQN, "LunarLander-v3"))
'LunarLander-v3 is not written in TensorFlow'
"""
