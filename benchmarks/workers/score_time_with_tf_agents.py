"""Trains with TF-Agents until a greedy evaluation reaches a return; see `score_time`.

    PYTHON -m benchmarks.workers.score_time_with_tf_agents TASK SEED

Its loops are those of TF-Agents' examples.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from tf_agents.agents.ddpg import actor_network, critic_network
from tf_agents.agents.dqn import dqn_agent
from tf_agents.agents.ppo import ppo_clip_agent
from tf_agents.agents.sac import sac_agent, tanh_normal_projection_network
from tf_agents.agents.td3 import td3_agent
from tf_agents.drivers import dynamic_step_driver
from tf_agents.environments import (
    batched_py_environment,
    suite_gym,
    tf_py_environment,
)
from tf_agents.networks import (
    actor_distribution_network,
    q_network,
    value_network,
)
from tf_agents.policies import random_tf_policy
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.trajectories import time_step as ts
from tf_agents.utils import common

from benchmarks.workers import score_time

_Buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer


def train(task: Mapping[str, Any], seed: int, watch: score_time.Watch) -> None:
    """Trains an agent of TF-Agents."""
    tf.random.set_seed(seed)
    members = [suite_gym.load(task["environment"]) for _ in range(task["num_envs"])]
    for number, member in enumerate(members):
        member.seed(seed + number)
    environment = tf_py_environment.TFPyEnvironment(
        batched_py_environment.BatchedPyEnvironment(members, multithreading=False)
    )
    make = {"PPO": _ppo, "DQN": _dqn, "SAC": _sac, "TD3": _td3}[task["algorithm"]]
    agent = make(environment, task)
    agent.initialize()
    loop = _rollouts if task["algorithm"] == "PPO" else _replay
    loop(environment, agent, task["arguments"], watch)


def _rollouts(
    environment: Any, agent: Any, s: Mapping[str, Any], watch: score_time.Watch
) -> None:
    """Collects a rollout and trains on it, again and again."""
    frames = s["n_steps"] * environment.batch_size
    buffer = _Buffer(agent.collect_data_spec, environment.batch_size, s["n_steps"] + 1)
    driver = dynamic_step_driver.DynamicStepDriver(
        environment,
        agent.collect_policy,
        observers=[buffer.add_batch],
        num_steps=frames,
    )
    collect, update = common.function(driver.run), common.function(agent.train)
    predict = _greedy(agent)
    for steps in range(frames, watch.steps + frames, frames):
        collect()
        update(experience=buffer.gather_all())
        buffer.clear()
        if watch.is_due(steps):
            watch.evaluate(steps, predict)
        if watch.is_over:
            return


def _replay(
    environment: Any, agent: Any, s: Mapping[str, Any], watch: score_time.Watch
) -> None:
    """Fills a replay buffer, and then takes a step and an update in turn."""
    capacity = min(s["buffer_size"], watch.steps + 1)
    buffer = _Buffer(agent.collect_data_spec, 1, capacity)
    start = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    drive = functools.partial(
        dynamic_step_driver.DynamicStepDriver,
        environment,
        observers=[buffer.add_batch],
    )
    common.function(drive(start, num_steps=s["learning_starts"]).run)()
    collect = common.function(drive(agent.collect_policy, num_steps=1).run)
    update, predict = common.function(agent.train), _greedy(agent)
    batches = iter(
        buffer.as_dataset(
            num_parallel_calls=3, sample_batch_size=s["batch_size"], num_steps=2
        ).prefetch(3)
    )
    time_step = None
    for steps in range(s["learning_starts"] + 1, watch.steps + 1):
        time_step, _ = collect(time_step)
        update(next(batches)[0])
        if watch.is_due(steps):
            watch.evaluate(steps, predict)
        if watch.is_over:
            return


def _greedy(agent: Any) -> score_time.Predict:
    """Returns a function of observations that returns the greedy actions."""
    act = common.function(agent.policy.action)

    def predict(observations: Any) -> Any:
        batch = tf.constant(observations, tf.float32)
        return act(ts.restart(batch, len(observations))).action.numpy()

    return predict


def _ppo(environment: Any, task: Mapping[str, Any]) -> Any:
    """Makes PPO; each epoch has one minibatch, the whole rollout."""
    s = task["arguments"]
    if s["batch_size"] != s["n_steps"] * environment.batch_size:
        raise ValueError(f"batch_size: got {s['batch_size']}, expected a whole rollout")
    updates = task["steps"] // s["batch_size"] * s["n_epochs"]
    (first,), (clip_range,) = s["learning_rate"], s["clip_range"]
    networks = {"fc_layer_params": (64, 64), "activation_fn": tf.keras.activations.tanh}
    return ppo_clip_agent.PPOClipAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        optimizer=tf.keras.optimizers.Adam(
            tf.keras.optimizers.schedules.PolynomialDecay(first, updates, 0.0),
            epsilon=1e-5,
        ),
        actor_net=actor_distribution_network.ActorDistributionNetwork(
            environment.observation_spec(), environment.action_spec(), **networks
        ),
        value_net=value_network.ValueNetwork(
            environment.observation_spec(), **networks
        ),
        importance_ratio_clipping=clip_range,
        lambda_value=s["gae_lambda"],
        discount_factor=s["gamma"],
        entropy_regularization=s["ent_coef"],
        value_pred_loss_coef=0.5,
        gradient_clipping=0.5,
        num_epochs=s["n_epochs"],
        use_gae=True,
        use_td_lambda_return=True,
        normalize_rewards=False,
        normalize_observations=False,
        train_step_counter=tf.Variable(0, dtype=tf.int64),
    )


def _dqn(environment: Any, task: Mapping[str, Any]) -> Any:
    s = task["arguments"]
    return dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=q_network.QNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=task["policy"]["net_arch"],
        ),
        optimizer=tf.keras.optimizers.Adam(s["learning_rate"]),
        epsilon_greedy=s["exploration_final_eps"],
        target_update_tau=s["tau"],
        target_update_period=s["target_update_interval"],
        td_errors_loss_fn=common.element_wise_squared_loss,
        gamma=s["gamma"],
        train_step_counter=tf.Variable(0, dtype=tf.int64),
    )


def _sac(environment: Any, task: Mapping[str, Any]) -> Any:
    actor = actor_distribution_network.ActorDistributionNetwork(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=task["policy"]["net_arch"],
        continuous_projection_net=functools.partial(
            tanh_normal_projection_network.TanhNormalProjectionNetwork,
            std_transform=sac_agent.std_clip_transform,
        ),
    )
    rate = task["arguments"]["learning_rate"]
    return sac_agent.SacAgent(
        **_actor_critic(environment, task),
        actor_network=actor,
        alpha_optimizer=tf.keras.optimizers.Adam(rate),
    )


def _td3(environment: Any, task: Mapping[str, Any]) -> Any:
    return td3_agent.Td3Agent(
        **_actor_critic(environment, task),
        actor_network=actor_network.ActorNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=task["policy"]["net_arch"],
        ),
        exploration_noise_std=task["action_noise"],
        target_update_period=2,
        actor_update_period=2,
    )


def _actor_critic(environment: Any, task: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments that SAC and TD3 share."""
    s = task["arguments"]
    specs = environment.observation_spec(), environment.action_spec()
    layers: Sequence[int] = task["policy"]["net_arch"]
    return {
        "time_step_spec": environment.time_step_spec(),
        "action_spec": specs[1],
        "critic_network": critic_network.CriticNetwork(
            specs, joint_fc_layer_params=layers
        ),
        "actor_optimizer": tf.keras.optimizers.Adam(s["learning_rate"]),
        "critic_optimizer": tf.keras.optimizers.Adam(s["learning_rate"]),
        "target_update_tau": s["tau"],
        "td_errors_loss_fn": tf.math.squared_difference,
        "gamma": s["gamma"],
        "train_step_counter": tf.Variable(0, dtype=tf.int64),
    }


if __name__ == "__main__":
    score_time.main(train, ("tf-agents", "tensorflow", "gymnasium", "numpy"))
