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

from typing import Any

from examples import actors, cli, runs
from tfrl import agents, environments, replay_service, train

CONFIG = cli.define_config("impala")


def main() -> None:
    """Trains IMPALA, in one process or with actors."""
    config = cli.read_config(CONFIG)
    if actors.NUM_ACTORS.value:
        train_with_actors(config)
        return
    runs.run(config, {"impala": "IMPALA"}, make_agent, make_loop)


def train_with_actors(config: cli.Config) -> None:
    """Trains on a queue of the sequences that actors write."""

    def make_queue(name: str, signature: Any) -> replay_service.Table:
        return replay_service.Table.queue(
            name, config.max_queue_size, signature=signature
        )

    actors.train_with_actors(
        config,
        "impala",
        # Old weights are those that an actor has pulled.
        lambda environment: make_agent(config, environment, collect_update_period=1),
        make_queue,
        # The last frame of a sequence has the last observation, as the next one's
        # first frame.
        sequence_length=config.sequence_length + 1,
        stride_length=config.sequence_length,
        push_period=config.collect_update_period,
        pull_period=config.collect_update_period * config.sequence_length,
    )


def make_agent(
    config: cli.Config,
    environment: environments.TFEnvironment,
    collect_update_period: int | None = None,
) -> agents.ImpalaAgent:
    """Makes the agent, whose actor and critic share no layers."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    specs = environment.time_step_spec(), environment.action_spec()
    actor_net, value_net = agents.ppo.ppo_networks.create_networks(
        specs[0].observation,
        specs[1],
        fc_layer_params=tuple(config.fc_layer_params),
        activation_fn=keras.activations.get(config.activation),
        dtype=config.dtype,
        seed=config.seed,
    )
    rate = config.learning_rate
    if config.anneal_learning_rate:
        rate = keras.optimizers.schedules.PolynomialDecay(
            rate, config.num_iterations, 0.0
        )
    return agents.ImpalaAgent(
        *specs,
        keras.optimizers.Adam(rate, epsilon=1e-5),
        actor_net,
        value_net,
        discount_factor=config.gamma,
        lambda_value=config.lambda_value,
        entropy_regularization=config.entropy_regularization,
        value_pred_loss_coef=config.value_loss_weight,
        max_abs_reward=config.max_abs_reward or None,
        gradient_clipping=config.gradient_clipping,
        collect_update_period=collect_update_period or config.collect_update_period,
        observation_normalizer=cli.make_observation_normalizer(config, environment),
        seed=config.seed,
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
