"""Trains one agent with several processes: actors, a replay server and a learner.

An `Experiment` says what they do, and `run_distributed` starts them, watches them and
starts those again that are killed. The tables of the server are what the processes say
to each other, and this is one of them:

>>> from tfrl import replay_service, train
>>> from tfrl.distribute import reports
>>> server = replay_service.Server([reports.make_table()])
>>> client = replay_service.Client(f"localhost:{server.port}")
>>> seen = train.IterationInfo(0, 0, 100, 2, average_return=20.0, loss=0.0)
>>> reports.Reporter(client, number=0).report(lambda: seen)  # An actor.
>>> collected = reports.Collected(client)  # The learner.
>>> collected.take()
>>> collected.counters()
{'environment_steps': 100, 'episodes': 2, 'average_return': 20.0}
>>> server.stop()
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
