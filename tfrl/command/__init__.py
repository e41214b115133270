"""The command `tfrl`: train, sweep, tune, play, evaluate, compare, report and list.

>>> from tfrl.command import main
>>> sorted(main.COMMANDS)[:3]
['cache', 'compare', 'completion']
"""
