"""Trains IMPALA on any Gymnasium environment.

    python -m examples.train_impala
    python -m examples.train_impala --seed=3 --config.learning_rate=3e-4
    python -m examples.train_impala --num_actors=2

It chooses discrete and continuous actions. The settings are in configs/impala.py. With
--num_actors, actors in processes of their own collect, and a learner in another one
trains; without, one program does both and is faster on few cores. To resume a run that
was interrupted or killed, run the same command again. Watch it with
`tensorboard --logdir=logs`.
"""

from __future__ import annotations

import functools

from examples import actors, cli, distributed, impala, runs
from tfrl import agents, environments, train

CONFIG = cli.define_config("impala")


def main() -> None:
    """Trains IMPALA, in one process or with actors."""
    config = cli.read_config(CONFIG)
    if actors.NUM_ACTORS.value:
        train_with_actors(config)
        return
    runs.run(config, {"impala": "IMPALA"}, impala.make_agent, make_loop)


def train_with_actors(config: cli.Config) -> None:
    """Trains on a queue of the sequences that actors write."""
    period = config.collect_update_period
    actors.train_with_actors(
        config,
        "impala",
        functools.partial(
            distributed.of_queue,
            config,
            "IMPALA",
            # Old weights are those that an actor has pulled.
            lambda environment: impala.make_agent(
                config, environment, collect_update_period=1
            ),
            push_period=period,
            pull_period=period * config.sequence_length,
        ),
    )


def make_loop(
    config: cli.Config,
    environment: environments.TFPyEnvironment,
    agent: agents.ImpalaAgent,
) -> train.OnPolicyLoop:
    """Makes the loop."""
    return train.OnPolicyLoop(
        environment,
        agent,
        collect_steps_per_iteration=config.sequence_length,
        seed=config.seed,
        jit_compile="auto" if config.jit_compile else False,
    )


if __name__ == "__main__":
    cli.start(main)
