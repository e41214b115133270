"""Measures tfrl's loops and buffer, set up as its examples."""

from __future__ import annotations

import functools
import os
import tempfile
import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import examples  # noqa: F401  Sets the variables that TensorFlow reads.
import tfrl
from benchmarks.workers import (
    making,
    minatar_settings,
    pendulum_settings,
    ppo_settings,
    pqn_settings,
    same_code,
    serving,
    waiting,
)
from tfrl import agents, networks, train
from tfrl.algorithms import registry, worlds
from tfrl.compilation import fast_function
from tfrl.drivers import dynamic_step_driver
from tfrl.policies import policy_loader, policy_saver, random_tf_policy
from tfrl.replay_buffers import (
    tf_prioritized_replay_buffer,
    tf_uniform_replay_buffer,
)
from tfrl.train.sweeps import members
from tfrl.trajectories import time_step
from tfrl.utils import common

_Buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer


def dqn(envs: int, **options: Any) -> serving.Task:
    """Makes the fused loop on Gymnasium's CartPole, with options of `OffPolicyLoop`."""
    environment = _environment("CartPole-v1", False, envs)
    return _off_policy(environment, 100_000, **options)


def compiled(envs: int, capacity: int) -> serving.Task:
    """Makes the whole loop as one XLA program, on the native CartPole."""
    environment = _environment("CartPole-v1", True, envs)
    return _off_policy(environment, capacity, jit_compile=True)


def sweep(runs: int) -> serving.Task:
    """Makes many such loops in one program, one environment each."""

    def make_loop(seed: int) -> train.OffPolicyLoop:
        environment = _environment("CartPole-v1", True, seed=seed)
        return _off_policy_loop(environment, 10_000, seed, jit_compile=True)

    return _sweep(make_loop, runs)


def tutorial(calls: str) -> serving.Task:
    """Makes the tutorial's loop in Python."""
    environment = _environment("CartPole-v1", False)
    agent = _dqn_agent(environment)
    buffer = _Buffer(agent.collect_data_spec, batch_size=1, max_length=100_000)
    start = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    dynamic_step_driver.DynamicStepDriver(
        environment, start, observers=[buffer.add_batch], num_steps=1000
    ).run()
    driver = dynamic_step_driver.DynamicStepDriver(
        environment, agent.collect_policy, observers=[buffer.add_batch], num_steps=1
    )
    dataset = buffer.as_dataset(
        num_parallel_calls=3, sample_batch_size=64, num_steps=2
    ).prefetch(3)
    return same_code.tutorial_loop(
        environment, driver, iter(dataset), agent, common.function, calls
    )


def reinforce(native: bool = False, jit_compile: bool = False) -> serving.Task:
    """Makes REINFORCE with its usual settings."""
    return _loop("reinforce", "", native, jit_compile=jit_compile)


def actor_critic(
    algorithm: str,
    batch: int,
    native: bool,
    jit_compile: bool,
    units: int = 256,
    **changes: Any,
) -> serving.Task:
    """Makes the loop of an actor-critic on Pendulum.

    Args:
      algorithm: Its name.
      batch: Frames in a batch.
      native: Whether the environment is the one in TensorFlow.
      jit_compile: Whether XLA compiles the loop.
      units: The size of each of two layers, where `changes` give none.
      **changes: Other settings.
    """
    settings = {
        "replay_capacity": pendulum_settings.REPLAY_CAPACITY,
        "initial_collect_steps": pendulum_settings.LEARNING_STARTS,
        "batch_size": batch,
        "actor_learning_rate": pendulum_settings.LEARNING_RATE,
        "critic_learning_rate": pendulum_settings.LEARNING_RATE,
        "gamma": pendulum_settings.GAMMA,
        "target_update_tau": pendulum_settings.TARGET_UPDATE_TAU,
        "actor_fc_layer_params": (units, units),
        "critic_fc_layer_params": (units, units),
        "jit_compile": jit_compile,
        **changes,
    }
    fields = registry.find(algorithm).setting_fields()
    known = {name: x for name, x in settings.items() if name in fields}
    return _loop(algorithm, pendulum_settings.ENVIRONMENT, native, **known)


def ppo(envs: int, steps: int, native: bool, jit_compile: bool) -> serving.Task:
    """Makes PPO's loop on CartPole."""
    return making.loop_task(_ppo_loop(envs, steps, native, jit_compile))


def ppo_sweep(envs: int, steps: int, runs: int) -> serving.Task:
    """Makes many such loops in one program."""
    return _sweep(lambda seed: _ppo_loop(envs, steps, True, True, seed), runs)


def _ppo_loop(
    envs: int, steps: int, native: bool, jit_compile: bool, seed: int = 0
) -> train.TrainingLoop:
    made = making.algorithm(
        "ppo",
        ppo_settings.ENVIRONMENT,
        native,
        num_envs=envs,
        seed=seed,
        collect_steps_per_iteration=steps,
        num_epochs=ppo_settings.EPOCHS,
        minibatch_size=envs * steps // ppo_settings.MINIBATCHES,
        fc_layer_params=(ppo_settings.UNITS, ppo_settings.UNITS),
        learning_rate=ppo_settings.LEARNING_RATE,
        final_learning_rate=None,
        clip_range=ppo_settings.CLIP_RANGE,
        final_clip_range=None,
        value_clip_range=ppo_settings.CLIP_RANGE,
        gamma=ppo_settings.GAMMA,
        lambda_value=ppo_settings.GAE_LAMBDA,
        entropy_regularization=ppo_settings.ENTROPY_WEIGHT,
        value_loss_weight=ppo_settings.VALUE_WEIGHT,
        max_gradient_norm=ppo_settings.GRADIENT_NORM,
        jit_compile=jit_compile,
    )
    return made.build()


def pqn(envs: int, steps: int, native: bool, jit_compile: bool) -> serving.Task:
    """Makes PQN's loop on CartPole."""
    return _loop(
        "pqn",
        pqn_settings.ENVIRONMENT,
        native,
        num_envs=envs,
        collect_steps_per_iteration=steps,
        num_epochs=pqn_settings.EPOCHS,
        minibatch_size=envs * steps // pqn_settings.MINIBATCHES,
        fc_layer_params=pqn_settings.UNITS,
        learning_rate=pqn_settings.LEARNING_RATE,
        final_learning_rate=None,
        gamma=pqn_settings.GAMMA,
        lambda_value=pqn_settings.LAMBDA,
        initial_epsilon=pqn_settings.EPSILON,
        final_epsilon=pqn_settings.EPSILON,
        max_gradient_norm=pqn_settings.GRADIENT_NORM,
        jit_compile=jit_compile,
    )


def minatar(algorithm: str, envs: int, steps: int = 0) -> serving.Task:
    """Makes the loop of PPO, PQN or DQN on a game of MinAtar in JAX."""
    settings = {**minatar_settings.ALGORITHMS[algorithm], "num_envs": envs}
    if steps:
        settings["collect_steps_per_iteration"] = steps
        settings["minibatch_size"] = envs * steps // ppo_settings.MINIBATCHES
    environment = minatar_settings.ENVIRONMENT
    return _loop(algorithm, environment, False, jit_compile=True, **settings)


def random_play(environment: str, envs: int) -> serving.Task:
    """Makes a compiled loop of random actions.

    Its fact is the time from the environment's name to the end of the first call.
    """
    started = time.perf_counter()
    made = worlds.make_environment(environment, envs, 0)
    spec = made.action_spec()

    def act(call: tf.Tensor) -> tf.Tensor:
        seed = tf.stack([call, 0])
        if spec.dtype.is_floating:
            return tf.random.stateless_uniform(
                [envs, *spec.shape], seed, spec.minimum, spec.maximum, alg="philox"
            )
        least, most = (tf.cast(x, tf.float32) for x in (spec.minimum, spec.maximum))
        drawn = tf.random.stateless_uniform([envs, *spec.shape], seed, alg="philox")
        return tf.cast(least + drawn * (most - least + 1), spec.dtype)

    @fast_function.fast_function(
        label=f"{environment} {envs}", jit_compile=True, autograph=False
    )
    def play(start: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        def body(call: tf.Tensor, steps: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            begins = made.step(act(call)).is_first()
            # What begins an episode is no step.
            return call + 1, steps + envs - tf.reduce_sum(tf.cast(begins, tf.int32))

        loop = (start, tf.constant(0))
        return tf.while_loop(lambda call, _: call < start + count, body, loop)[1]

    calls = tf.constant(0)
    play(calls, tf.constant(1)).numpy()
    facts = {"first call": time.perf_counter() - started}

    def run(count: int) -> dict[str, int]:
        nonlocal calls
        calls += count
        steps = int(play(calls, tf.constant(count)))
        return {"iterations": count, "environment steps": steps}

    return serving.Task(run, facts)


def _loop(*arguments: Any, **settings: Any) -> serving.Task:
    """Makes a loop; see `making.algorithm`."""
    return making.loop_task(making.algorithm(*arguments, **settings).build())


def overlap(
    algorithm: str,
    environment: str,
    units: int,
    batch: int,
    overlap: bool,
    waits: float = 0.0,
) -> serving.Task:
    """Makes a compiled loop of an actor and critics on a Python environment.

    Args:
      algorithm: The name of its algorithm.
      environment: The environment's name.
      units: The size of each of two layers.
      batch: Frames in a batch.
      overlap: Whether the environment steps while the updates run.
      waits: Seconds that each of its steps takes more.
    """
    layers = ["actor_fc_layer_params", "critic_fc_layer_params"]
    kind: Any = registry.find(algorithm)
    made = kind(
        functools.partial(waiting.make, environment, waits),
        **dict.fromkeys(layers, (units, units)),
        batch_size=batch,
        overlap=overlap,
        seed=0,
    )
    return making.loop_task(made.build())


def by_preset(algorithm: str, environment: str, **changes: Any) -> serving.Task:
    """Makes the loop of an algorithm, with its preset for an environment.

    Args:
      algorithm: Its name.
      environment: The environment's name.
      **changes: Other settings.
    """
    kind: Any = registry.find(algorithm)
    return making.loop_task(kind(environment, seed=0, **changes).build())


def steps(environment: str, waits: float = 0.0) -> serving.Task:
    """Makes steps of an environment alone, with one action."""
    made = waiting.make(environment, waits)
    made.reset(seed=0)
    action = made.action_space.sample()

    def run(count: int) -> dict[str, int]:
        for _ in range(count):
            if any(made.step(action)[2:4]):
                made.reset()
        return {"iterations": count}

    return serving.Task(run)


def buffer(prioritized: bool = False, **settings: Any) -> serving.Task:
    """Makes an operation of a replay buffer alone."""
    kind: Any = _Buffer
    if prioritized:
        kind = tf_prioritized_replay_buffer.TFPrioritizedReplayBuffer
    return same_code.buffer_task(kind, **settings)


def predict(
    algorithm: str, environment: str, units: int, observations: int, way: str
) -> serving.Task:
    """Makes calls for the action of an algorithm with two layers.

    Args:
      algorithm: The name of its class.
      environment: The environment's name.
      units: The number of units of each layer.
      observations: The number of observations of a call; 1 is not given as a batch.
      way: "class" is its `predict`, "action" its greedy policy's `action` of arrays,
        "loaded" the `predict` of its policy, saved and loaded.
    """
    kind: Any = getattr(tfrl, algorithm)
    names = {"fc_layer_params", "actor_fc_layer_params"} & kind.setting_fields().keys()
    layers = dict.fromkeys(names, (units, units))
    made = kind(environment, **layers, jit_compile=False, seed=0)
    shape = made.environment.observation_spec().shape
    batch = np.zeros((observations, *shape), np.float32)
    given = batch if observations > 1 else batch[0]
    if way == "class":
        return serving.calling(lambda: made.predict(given))
    if way == "action":
        step = time_step.restart(batch, observations)
        return serving.calling(lambda: made.policy.action(step))
    with tempfile.TemporaryDirectory() as folder:
        policy_saver.PolicySaver(made.policy).save(folder)
        loaded = policy_loader.load(folder)
    return serving.calling(lambda: loaded.predict(given))


def _environment(name: str, native: bool, envs: int = 1, seed: int = 0) -> Any:
    if native:
        from tfrl.environments import native as native_environments

        return native_environments.load(name, batch_size=envs, seed=seed)
    return worlds.make_environment(name, envs, seed)


def _off_policy(environment: Any, capacity: int, **options: Any) -> serving.Task:
    return making.loop_task(_off_policy_loop(environment, capacity, 0, **options))


def _off_policy_loop(
    environment: Any, capacity: int, seed: int, algorithm: str = "dqn", **options: Any
) -> train.OffPolicyLoop:
    agent = _dqn_agent(environment, algorithm)
    envs = environment.batch_size
    buffer = _Buffer(
        agent.collect_data_spec, batch_size=envs, max_length=capacity // envs
    )
    return train.OffPolicyLoop(
        environment,
        agent,
        buffer,
        initial_collect_steps=max(1000, 2 * envs),
        seed=seed,
        **options,
    )


def _sweep(make_loop: members.MakeLoop, runs: int) -> serving.Task:
    together = members.Members(make_loop, range(runs), {}, num_eval_episodes=1)
    together.start()

    def run(count: int) -> dict[str, int]:
        each = max(1, count // runs)
        together.advance(each)
        return {"iterations": each * runs}

    return serving.Task(run)


def _dqn_agent(environment: Any, algorithm: str = "dqn") -> agents.DqnAgent:
    """Makes a DQN, C51 or QR-DQN agent."""
    kinds: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "dqn": (
            agents.DqnAgent,
            networks.QNetwork,
            {"td_errors_loss_fn": common.element_wise_squared_loss},
        ),
        "c51": (
            agents.CategoricalDqnAgent,
            functools.partial(networks.CategoricalQNetwork, num_atoms=51),
            {"min_q_value": 0.0, "max_q_value": 100.0},
        ),
        "qr_dqn": (
            agents.QrDqnAgent,
            functools.partial(networks.QuantileQNetwork, num_quantiles=50),
            {},
        ),
    }
    kind, network, options = kinds[algorithm]
    agent = kind(
        environment.time_step_spec(),
        environment.action_spec(),
        network(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=(100,),
            seed=0,
        ),
        optimizer=keras.optimizers.Adam(1e-3),
        epsilon_greedy=0.1,
        target_update_tau=0.05,
        target_update_period=5,
        gamma=0.99,
        **options,
    )
    agent.initialize()
    return agent


if __name__ == "__main__":
    serving.serve(
        {
            "dqn": dqn,
            "compiled": compiled,
            "sweep": sweep,
            "tutorial": tutorial,
            "reinforce": reinforce,
            "actor_critic": actor_critic,
            "ppo": ppo,
            "ppo_sweep": ppo_sweep,
            "pqn": pqn,
            "minatar": minatar,
            "random_play": random_play,
            "overlap": overlap,
            "by_preset": by_preset,
            "steps": steps,
            "buffer": buffer,
            "predict": predict,
        },
        ["tensorflow", "keras", "gymnasium", "numpy"],
        {"oneDNN": os.environ["TF_ENABLE_ONEDNN_OPTS"]},
    )
