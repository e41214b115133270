"""Trains one agent with several processes: actors, a replay server and a learner.

An `Experiment` defines their work. `run_distributed` starts the processes, watches
them, and restarts a process that is killed.

- `launch`: starts the processes, on this host, on a Ray cluster or by commands.
- `coordination`: the coordinator of several hosts, and its workers.
- `roles`: the actor, the learner and the evaluator.
- `lockstep`: the actor and the learner that take turns.
- `weights`: the weights on their way from the learner to the actors.
- `replay_servers`: the replay servers, and the messages of processes through them.
- `shards`: several replay servers that are used as one table.

The processes communicate through tables of the server, such as the table of reports:

>>> from tfrl import replay_service, train
>>> from tfrl.distribute.roles import actor_reports
>>> server = replay_service.Server([actor_reports.make_table()])
>>> client = replay_service.Client(f"localhost:{server.port}")
>>> seen = train.IterationInfo(0, 0, 100, 2, average_return=20.0, loss=0.0)
>>> actor_reports.Reporter(client, number=0).report(lambda: seen)  # An actor.
>>> collected = actor_reports.Collected(client)  # The learner.
>>> collected.take()
>>> collected.counters()
{'environment_steps': 100, 'episodes': 2, 'average_return': 20.0}
>>> server.stop()
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
