"""The command `tfrl`: train, play, evaluate, record and list.

>>> from tfrl.command import main
>>> sorted(main.COMMANDS)[:3]
['completion', 'evaluate', 'list']
"""
