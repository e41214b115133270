"""Measures TF-Agents 0.19, in its own Python environment, set up as its examples."""

from __future__ import annotations

import functools
import os
from typing import Any

import tensorflow as tf
from tf_agents.agents.ddpg import actor_network, critic_network
from tf_agents.agents.dqn import dqn_agent
from tf_agents.agents.ppo import ppo_clip_agent
from tf_agents.agents.reinforce import reinforce_agent
from tf_agents.agents.sac import sac_agent, tanh_normal_projection_network
from tf_agents.agents.td3 import td3_agent
from tf_agents.drivers import dynamic_step_driver, py_driver
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
from tf_agents.policies import py_tf_eager_policy, random_tf_policy
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.specs import tensor_spec
from tf_agents.utils import common

from benchmarks.workers import pendulum_settings, ppo_settings, same_code, serving

_Buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer


def dqn(envs: int) -> serving.Task:
    """Makes the loop of its DQN example: two calls per iteration."""
    return _dqn_loop(envs, "two")


def actor_critic(algorithm: str, units: int, batch: int) -> serving.Task:
    """Makes SAC or TD3 on Pendulum, with the same calls as DQN."""
    environment = tf_py_environment.TFPyEnvironment(
        suite_gym.load(pendulum_settings.ENVIRONMENT)
    )
    make_agent = {"sac": _sac_agent, "td3": _td3_agent}[algorithm]
    agent = make_agent(environment, (units, units))
    return _off_policy_loop(environment, agent, batch, "two")


def tutorial(calls: str) -> serving.Task:
    """Makes the tutorial's loop in Python."""
    return _dqn_loop(1, calls)


def reinforce(policy: str) -> serving.Task:
    """Makes the loop of its REINFORCE tutorial.

    With `policy` "as written" each iteration wraps the policy again, as the tutorial
    does, and so traces it again; with "kept" it is wrapped once.
    """
    import reverb
    from tf_agents.replay_buffers import reverb_replay_buffer, reverb_utils

    environment = suite_gym.load("CartPole-v0")
    agent = _reinforce_agent(tf_py_environment.TFPyEnvironment(environment))
    table = reverb.Table(
        "experience",
        max_size=2000,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=tensor_spec.add_outer_dim(
            tensor_spec.from_spec(agent.collect_data_spec)
        ),
    )
    buffer = reverb_replay_buffer.ReverbReplayBuffer(
        agent.collect_data_spec,
        table_name="experience",
        sequence_length=None,
        local_server=reverb.Server([table]),
    )
    add = reverb_utils.ReverbAddEpisodeObserver(buffer.py_client, "experience", 2000)
    train = common.function(agent.train)
    steps = 0

    def observe(frame: Any) -> None:
        nonlocal steps
        steps += not frame.is_boundary()
        add(frame)

    def wrap_policy() -> Any:
        return py_tf_eager_policy.PyTFEagerPolicy(
            agent.collect_policy, use_tf_function=True
        )

    kept = wrap_policy()

    def run(count: int) -> dict[str, int]:
        before = steps
        for _ in range(count):
            wrapped = wrap_policy() if policy == "as written" else kept
            driver = py_driver.PyDriver(environment, wrapped, [observe], max_episodes=2)
            driver.run(environment.reset())
            episodes, _ = next(iter(buffer.as_dataset(sample_batch_size=1)))
            train(experience=episodes)
            buffer.clear()
        return {"iterations": count, "environment steps": steps - before}

    return serving.Task(run)


def ppo(envs: int, steps: int) -> serving.Task:
    """Makes the loop of its PPO example, with all frames of a rollout in a minibatch.

    Its agent does the epochs by itself, each on the whole rollout: its updates are
    fewer and larger than the other contenders'.
    """
    environment = _environment(envs)
    agent = _ppo_agent(environment)
    buffer = _Buffer(agent.collect_data_spec, batch_size=envs, max_length=steps + 1)
    driver = dynamic_step_driver.DynamicStepDriver(
        environment,
        agent.collect_policy,
        observers=[buffer.add_batch],
        num_steps=envs * steps,
    )
    collect, train = common.function(driver.run), common.function(agent.train)

    def run(count: int) -> dict[str, int]:
        for _ in range(count):
            collect()
            train(experience=buffer.gather_all())
            buffer.clear()
        return {"iterations": count, "environment steps": count * envs * steps}

    return serving.Task(run)


def buffer(**settings: Any) -> serving.Task:
    """Makes an operation of the replay buffer alone."""
    return same_code.buffer_task(_Buffer, **settings)


def _dqn_loop(envs: int, calls: str) -> serving.Task:
    environment = _environment(envs)
    return _off_policy_loop(environment, _dqn_agent(environment), 64, calls)


def _off_policy_loop(
    environment: Any, agent: Any, batch: int, calls: str
) -> serving.Task:
    envs = environment.batch_size
    buffer = _Buffer(
        agent.collect_data_spec, batch_size=envs, max_length=100_000 // envs
    )
    start = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    fill = dynamic_step_driver.DynamicStepDriver(
        environment, start, observers=[buffer.add_batch], num_steps=1000
    )
    common.function(fill.run)()
    driver = dynamic_step_driver.DynamicStepDriver(
        environment, agent.collect_policy, observers=[buffer.add_batch], num_steps=envs
    )
    dataset = buffer.as_dataset(
        num_parallel_calls=3, sample_batch_size=batch, num_steps=2
    ).prefetch(3)
    return same_code.tutorial_loop(
        environment, driver, iter(dataset), agent, common.function, calls
    )


def _environment(envs: int) -> Any:
    if envs == 1:
        return tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0"))
    members = [suite_gym.load("CartPole-v0") for _ in range(envs)]
    batched = batched_py_environment.BatchedPyEnvironment(members, multithreading=False)
    return tf_py_environment.TFPyEnvironment(batched)


def _dqn_agent(environment: Any) -> Any:
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=q_network.QNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=(100,),
        ),
        optimizer=tf.keras.optimizers.Adam(1e-3),
        epsilon_greedy=0.1,
        target_update_tau=0.05,
        target_update_period=5,
        td_errors_loss_fn=common.element_wise_squared_loss,
        gamma=0.99,
        train_step_counter=tf.Variable(0, dtype=tf.int64),
    )
    agent.initialize()
    return agent


def _sac_agent(environment: Any, layers: tuple[int, ...]) -> Any:
    actor = actor_distribution_network.ActorDistributionNetwork(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=layers,
        continuous_projection_net=functools.partial(
            tanh_normal_projection_network.TanhNormalProjectionNetwork,
            std_transform=sac_agent.std_clip_transform,
        ),
    )
    agent = sac_agent.SacAgent(
        **_actor_critic_arguments(environment, layers),
        actor_network=actor,
        alpha_optimizer=tf.keras.optimizers.Adam(pendulum_settings.LEARNING_RATE),
    )
    agent.initialize()
    return agent


def _td3_agent(environment: Any, layers: tuple[int, ...]) -> Any:
    agent = td3_agent.Td3Agent(
        **_actor_critic_arguments(environment, layers),
        actor_network=actor_network.ActorNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=layers,
        ),
        exploration_noise_std=pendulum_settings.TD3_EXPLORATION_NOISE,
        target_update_period=pendulum_settings.TD3_DELAY,
        actor_update_period=pendulum_settings.TD3_DELAY,
    )
    agent.initialize()
    return agent


def _actor_critic_arguments(
    environment: Any, layers: tuple[int, ...]
) -> dict[str, Any]:
    specs = environment.observation_spec(), environment.action_spec()
    return {
        "time_step_spec": environment.time_step_spec(),
        "action_spec": specs[1],
        "critic_network": critic_network.CriticNetwork(
            specs, joint_fc_layer_params=layers
        ),
        "actor_optimizer": tf.keras.optimizers.Adam(pendulum_settings.LEARNING_RATE),
        "critic_optimizer": tf.keras.optimizers.Adam(pendulum_settings.LEARNING_RATE),
        "target_update_tau": pendulum_settings.TARGET_UPDATE_TAU,
        "td_errors_loss_fn": tf.math.squared_difference,
        "gamma": pendulum_settings.GAMMA,
        "train_step_counter": tf.Variable(0, dtype=tf.int64),
    }


def _reinforce_agent(environment: Any) -> Any:
    agent = reinforce_agent.ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        actor_network=actor_distribution_network.ActorDistributionNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=(100,),
        ),
        optimizer=tf.keras.optimizers.Adam(1e-3),
        normalize_returns=True,
        train_step_counter=tf.Variable(0, dtype=tf.int64),
    )
    agent.initialize()
    return agent


def _ppo_agent(environment: Any) -> Any:
    layers = (ppo_settings.UNITS, ppo_settings.UNITS)
    agent = ppo_clip_agent.PPOClipAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        optimizer=tf.keras.optimizers.Adam(
            ppo_settings.LEARNING_RATE, epsilon=ppo_settings.ADAM_EPSILON
        ),
        actor_net=actor_distribution_network.ActorDistributionNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=layers,
            activation_fn=tf.keras.activations.tanh,
        ),
        value_net=value_network.ValueNetwork(
            environment.observation_spec(),
            fc_layer_params=layers,
            activation_fn=tf.keras.activations.tanh,
        ),
        importance_ratio_clipping=ppo_settings.CLIP_RANGE,
        value_clipping=ppo_settings.CLIP_RANGE,
        lambda_value=ppo_settings.GAE_LAMBDA,
        discount_factor=ppo_settings.GAMMA,
        entropy_regularization=ppo_settings.ENTROPY_WEIGHT,
        value_pred_loss_coef=ppo_settings.VALUE_WEIGHT,
        gradient_clipping=ppo_settings.GRADIENT_NORM,
        num_epochs=ppo_settings.EPOCHS,
        use_gae=True,
        use_td_lambda_return=True,
        normalize_rewards=False,
        normalize_observations=False,
        train_step_counter=tf.Variable(0, dtype=tf.int64),
    )
    agent.initialize()
    return agent


if __name__ == "__main__":
    serving.serve(
        {
            "dqn": dqn,
            "actor_critic": actor_critic,
            "ppo": ppo,
            "tutorial": tutorial,
            "reinforce": reinforce,
            "buffer": buffer,
        },
        ["tf-agents", "tensorflow", "gym", "numpy"],
        {"oneDNN": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "as it is by default")},
    )
