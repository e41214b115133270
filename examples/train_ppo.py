"""Trains PPO or A2C on any Gymnasium environment.

    python -m examples.train_ppo
    python -m examples.train_ppo --seed=3 --config.learning_rate=3e-4
    python -m examples.train_ppo --config=configs/ppo_pendulum.py
    python -m examples.train_ppo --config=configs/ppo_mujoco.py --env=Hopper-v5
    python -m examples.train_ppo --config=configs/ppo_atari.py --env=ALE/Breakout-v5
    python -m examples.train_ppo --config=configs/a2c.py
    python -m examples.train_ppo --config.lstm_size=64

Both choose discrete and continuous actions. The settings are in configs/ppo.py. To
resume a run that was interrupted or killed, run the same command again. Watch it with
`tensorboard --logdir=logs`, and play the best policy with
`python -m examples.play --logdir=logs/ppo_CartPole-v1_0`.
"""

from __future__ import annotations

from typing import Any

from examples import cli, runs, training
from tfrl import agents, environments, train, utils

CONFIG = cli.define_config("ppo")
ALGORITHMS = {"ppo": "PPO", "a2c": "A2C"}


def main() -> None:
    """Trains the agent that the configuration names."""
    runs.run(cli.read_config(CONFIG), ALGORITHMS, make_agent, make_loop)


def make_agent(
    config: cli.Config, environment: environments.TFPyEnvironment
) -> agents.PPOClipAgent | agents.A2CAgent:
    """Makes the agent, whose actor and critic share no layers."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    specs = environment.time_step_spec(), environment.action_spec()
    lstm_size = config.get("lstm_size")
    actor_net, value_net = agents.ppo.ppo_networks.create_networks(
        specs[0].observation,
        specs[1],
        fc_layer_params=tuple(config.fc_layer_params),
        conv_layer_params=tuple(config.conv_layer_params) or None,
        lstm_size=(lstm_size,) if lstm_size else None,
        activation_fn=keras.activations.get(config.activation),
        dtype=config.dtype,
        seed=config.seed,
    )
    reward_normalizer = None
    if config.normalize_rewards:
        reward_normalizer = utils.reward_normalizer.RewardNormalizer(
            environment.batch_size, config.gamma
        )
    rate = training.follow_progress(
        config, config.learning_rate, is_annealed=config.anneal_learning_rate
    )
    arguments: dict[str, Any] = {
        "optimizer": keras.optimizers.Adam(rate, epsilon=1e-5),
        "actor_net": actor_net,
        "value_net": value_net,
        "lambda_value": config.gae_lambda,
        "discount_factor": config.gamma,
        "entropy_regularization": config.entropy_regularization,
        "value_pred_loss_coef": config.value_loss_weight,
        "gradient_clipping": config.gradient_clipping,
        "normalize_advantages": config.normalize_advantages,
        "compute_value_and_advantage_in_train": False,
        "update_normalizers_in_train": False,
        "observation_normalizer": cli.make_observation_normalizer(config, environment),
        "reward_normalizer": reward_normalizer,
        "seed": config.seed,
    }
    if config.agent == "a2c":
        return agents.A2CAgent(*specs, **arguments)
    return agents.PPOClipAgent(
        *specs,
        importance_ratio_clipping=training.follow_progress(
            config, config.clip_range, is_annealed=config.anneal_clip_range
        ),
        value_clipping=config.value_clip_range or None,
        num_epochs=1,
        use_gae=True,
        use_td_lambda_return=True,
        normalize_observations=False,
        normalize_rewards=False,
        **arguments,
    )


def make_loop(
    config: cli.Config,
    environment: environments.TFPyEnvironment,
    agent: agents.PPOClipAgent | agents.A2CAgent,
) -> train.OnPolicyLoop:
    """Makes the loop."""
    return train.OnPolicyLoop(
        environment,
        agent,
        collect_steps_per_iteration=config.collect_steps_per_iteration,
        num_epochs=config.num_epochs,
        minibatch_size=config.minibatch_size or None,
        target_kl=config.target_kl or None,
        seed=config.seed,
        jit_compile="auto" if config.jit_compile else False,
    )


if __name__ == "__main__":
    cli.start(main)
