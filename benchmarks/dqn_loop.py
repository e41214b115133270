"""The DQN loop on CartPole-v1, in turn with Stable-Baselines3's where it is installed.

    python -m benchmarks.dqn_loop [--rounds=3] [--iterations=2000]

The common setting: one hidden layer of 100, batch 64, Adam 1e-3, a buffer of 100,000,
one environment step and one update an iteration. `default` is the setting of
`examples.train_dqn` instead: two layers, n-step returns, four steps and updates an
iteration. Figures are environment steps (and updates) a second; machines drift, so only
ratios within one run count.
"""

import importlib.util
import statistics
import time
from collections.abc import Callable

import keras
from absl import app, flags

from configs import dqn as dqn_config
from examples import cli, train_dqn
from tfrl import train
from tfrl.agents.dqn import dqn_agent
from tfrl.networks import q_network
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.utils import common

_ROUNDS = flags.DEFINE_integer("rounds", 3, "Rounds, each measuring every contender.")
_ITERATIONS = flags.DEFINE_integer("iterations", 2000, "Steps in a measurement.")


def make_tfrl(sampling: str) -> Callable[[int], None]:
    """Our loop in the common setting."""
    environment = cli.make_environment("CartPole-v1", 1, 0)
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=q_network.QNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=(100,),
            seed=0,
        ),
        optimizer=keras.optimizers.Adam(1e-3),
        target_update_tau=0.05,
        target_update_period=5,
        td_errors_loss_fn=common.element_wise_squared_loss,
        gamma=0.99,
    )
    agent.initialize()
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=1, max_length=100_000
    )
    loop = train.OffPolicyLoop(
        environment, agent, replay_buffer, sampling=sampling, seed=0
    )
    return lambda steps: loop.run(steps) and None


def make_default() -> Callable[[int], None]:
    """Our loop in the setting of the example."""
    config = dqn_config.get_config()
    environment = cli.make_environment(config.env, 1, 0)
    agent = train_dqn.make_agent(config, environment)
    agent.initialize()
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=1, max_length=config.replay_capacity
    )
    loop = train.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        collect_steps_per_iteration=config.collect_steps_per_iteration,
        train_steps_per_iteration=config.train_steps_per_iteration,
        sample_batch_size=config.batch_size,
        sampling=config.sampling,
        seed=0,
    )
    each = config.collect_steps_per_iteration
    return lambda steps: loop.run(steps // each) and None


def make_stable_baselines3() -> Callable[[int], None]:
    """Stable-Baselines3's DQN in the common setting, on one thread."""
    import stable_baselines3
    import torch

    torch.set_num_threads(1)
    model = stable_baselines3.DQN(
        "MlpPolicy",
        "CartPole-v1",
        policy_kwargs={"net_arch": [100]},
        batch_size=64,
        learning_rate=1e-3,
        buffer_size=100_000,
        learning_starts=200,
        target_update_interval=5,
        tau=0.05,
        train_freq=1,
        gradient_steps=1,
        exploration_fraction=0.01,
        exploration_final_eps=0.1,
        device="cpu",
    )
    model.learn(1000)
    return lambda steps: model.learn(steps, reset_num_timesteps=False) and None


def main(_: list[str]) -> None:
    contenders = {
        "tfrl, as_dataset": make_tfrl("dataset"),
        "tfrl, variables": make_tfrl("variables"),
        "tfrl, default of train_dqn": make_default(),
    }
    if importlib.util.find_spec("stable_baselines3"):
        contenders["Stable-Baselines3"] = make_stable_baselines3()
    for run in contenders.values():
        run(200)
    speeds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(_ROUNDS.value):
        for name, run in contenders.items():
            started = time.perf_counter()
            run(_ITERATIONS.value)
            speeds[name].append(_ITERATIONS.value / (time.perf_counter() - started))
    for name, measured in speeds.items():
        print(
            f"{name:28s} {statistics.median(measured):8.0f} steps/s "
            f"({min(measured):.0f} to {max(measured):.0f})"
        )


if __name__ == "__main__":
    app.run(main)
