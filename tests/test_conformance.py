"""Every part of the package passes the suite of its kind in `tfrl.testing`.

Batches of 1 and 7, nested and flat specs, each dtype.
"""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents import every_agent
from tests.pairs import some_slow
from tfrl import agents, environments, networks, policies, replay_buffers, testing
from tfrl.acme.tf import networks as acme_networks
from tfrl.environments import suite_gym, test_envs, tf_wrappers, wrappers
from tfrl.environments.gymnasium import vector_py_environment as vector
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import reward_normalizer, tensor_normalizer

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 float16 float32 float64"
FORCE = array_spec.BoundedArraySpec((2,), np.float32, -1, 1, name="force")
CHOICE = array_spec.BoundedArraySpec((), np.int32, 0, 2, name="choice")
FLAT = array_spec.BoundedArraySpec((3,), np.float32, 1, 2, name="flat")
NESTED = {
    "image": array_spec.BoundedArraySpec((4, 4, 1), np.uint8, 0, 255, name="image"),
    "pair": (FLAT, array_spec.BoundedArraySpec((), np.int64, 0, 4, name="number")),
}
NESTED_ACTION = {"force": FORCE, "choice": (CHOICE,)}


def make_suite(base, **members):
    """A suite whose `make_...` and attributes are `members`."""

    def method(value):
        return staticmethod(value) if callable(value) else value

    return type(base.__name__, (base,), {k: method(v) for k, v in members.items()})()


# Environments.


def spec_of(dtype):
    bounds = (0, 1) if dtype == "bool" else (1, 2)
    return array_spec.BoundedArraySpec((2,), np.dtype(dtype), *bounds, name=dtype)


def random_environment(observation=FLAT, action=CHOICE, batch_size=None, seed=1):
    return environments.RandomPyEnvironment(
        observation, action, 0.2, batch_size=batch_size, seed=seed
    )


def batched(make, size):
    return environments.BatchedPyEnvironment([make() for _ in range(size)])


class GoalIsTheStart(wrappers.GoalReplayEnvWrapper):
    def get_trajectory_with_goal(self, trajectory, goal):
        return trajectory._replace(observation=goal)

    def get_goal_from_trajectory(self, trajectory):
        return trajectory.observation


class MaskedActions(testing.PyEnvironmentConformance):
    """Takes only the actions that `ExtraDisabledActionsWrapper` leaves valid."""

    def extreme_actions(self, environment):
        return []

    def sample_action(self, environment, rng):
        size = environment.batch_size
        outer = () if size is None else (size,)
        return array_spec.sample_spec_nest(CHOICE, rng, outer_dims=outer)


class OfProcesses(testing.PyEnvironmentConformance):
    """Starts processes for the checks of starting and ending, and shares the others."""

    def run_all(self):
        shared = self.make_environment()
        close, shared.close = shared.close, lambda: None
        try:
            for name in self.checks():
                needs_its_own = "before_any_reset" in name or "closed" in name
                self.make_environment = (
                    type(self).make_environment if needs_its_own else lambda: shared
                )
                getattr(self, name)()
        finally:
            close()


WRAPPERS = {
    "FlattenActionWrapper": (
        lambda e: wrappers.FlattenActionWrapper(e, np.float32),
        NESTED_ACTION,
    ),
    "ObservationFilterWrapper": (
        lambda e: wrappers.ObservationFilterWrapper(e, [0, 2]),
        CHOICE,
    ),
    "FlattenObservationsWrapper": (wrappers.FlattenObservationsWrapper, CHOICE),
    "ActionDiscretizeWrapper": (
        lambda e: wrappers.ActionDiscretizeWrapper(e, 3),
        FORCE,
    ),
    "ActionClipWrapper": (wrappers.ActionClipWrapper, NESTED_ACTION),
    "ActionOffsetWrapper": (
        wrappers.ActionOffsetWrapper,
        array_spec.BoundedArraySpec((), np.int32, -1, 2),
    ),
    "GoalReplayEnvWrapper": (GoalIsTheStart, CHOICE),
    "HistoryWrapper": (
        lambda e: wrappers.HistoryWrapper(e, 3, include_actions=True),
        NESTED_ACTION,
    ),
    "OneHotActionWrapper": (wrappers.OneHotActionWrapper, NESTED_ACTION),
    "EnumerateActionsWrapper": (
        wrappers.EnumerateActionsWrapper,
        {"choice": CHOICE, "again": (CHOICE,)},
    ),
    "Float32ActionsWrapper": (
        wrappers.Float32ActionsWrapper,
        array_spec.BoundedArraySpec((2,), np.float64, -1, 1),
    ),
    "ExtraDisabledActionsWrapper": (
        lambda e: wrappers.ExtraDisabledActionsWrapper(e, 2),
        CHOICE,
    ),
    "NumpyStateWrapper": (wrappers.NumpyStateWrapper, CHOICE),
    "RunStats": (wrappers.RunStats, CHOICE),
    "PerformanceProfiler": (
        lambda e: wrappers.PerformanceProfiler(e, lambda _: None, 1_000),
        CHOICE,
    ),
}


def wrapped(name, size):
    wrap, action = WRAPPERS[name]
    if size is None:
        return wrap(random_environment(FLAT, action))
    return wrap(batched(functools.partial(random_environment, FLAT, action), size))


def num_steps(name):
    """How many steps show the ends of several episodes."""
    if name.startswith("Parallel"):
        return 12
    # Those on random steps end every fifth of them.
    of_random_steps = name in DTYPES or name.startswith(("nested", *WRAPPERS))
    return 20 if of_random_steps else 60


def environment_parts():
    load = functools.partial(suite_gym.load, "CartPole-v1")
    parts = {
        "CartPole": load,
        "Pendulum": lambda: suite_gym.load("Pendulum-v1"),
        "CountingEnv": lambda: test_envs.CountingEnv(4),
        "EpisodeCountingEnv": lambda: test_envs.EpisodeCountingEnv(4),
        "NestedCountingEnv": lambda: test_envs.NestedCountingEnv(4, nested_action=True),
        "TimeLimit": lambda: wrappers.TimeLimit(random_environment(), 3),
        "FixedLength": lambda: wrappers.FixedLength(random_environment(), 6),
        "ActionRepeat": lambda: wrappers.ActionRepeat(random_environment(), 2),
        "BatchedPyEnvironment[1]": lambda: batched(load, 1),
        "BatchedPyEnvironment[7]": lambda: batched(load, 7),
        "ParallelPyEnvironment[1]": lambda: environments.ParallelPyEnvironment([load]),
        "ParallelPyEnvironment[2]": lambda: environments.ParallelPyEnvironment(
            [load] * 2
        ),
        "VectorPyEnvironment[1]": lambda: vector.load("CartPole-v1", 1),
        "VectorPyEnvironment[7]": lambda: vector.load("CartPole-v1", 7),
    }
    for size in (None, 1, 7):
        parts[f"nested[{size}]"] = functools.partial(
            random_environment, NESTED, NESTED_ACTION, size
        )
        for name in WRAPPERS:
            parts[f"{name}[{size}]"] = functools.partial(wrapped, name, size)
    for dtype in DTYPES.split():
        action = CHOICE if dtype in ("bool", "float16") else spec_of(dtype)
        parts[dtype] = functools.partial(random_environment, spec_of(dtype), action)
    for name, make in parts.items():
        is_process = name.startswith("Parallel")
        base = testing.PyEnvironmentConformance
        if is_process:
            base = OfProcesses
        elif name.startswith("ExtraDisabled"):
            base = MaskedActions
        yield (
            f"environment-{name}",
            make_suite(
                base,
                make_environment=make,
                num_steps=num_steps(name),
                pads_episodes=name == "FixedLength",
            ),
        )


def tf_environment_parts():
    def random_tf(size, observation=NESTED, action=NESTED_ACTION):
        return environments.RandomTFEnvironment(
            tensor_spec.from_spec(ts.time_step_spec(observation)),
            tensor_spec.from_spec(action),
            batch_size=size,
            seed=1,
        )

    parts = {
        "TFPyEnvironment[1]": lambda: environments.TFPyEnvironment(
            suite_gym.load("CartPole-v1")
        ),
        "TFPyEnvironment[7]": lambda: environments.TFPyEnvironment(
            random_environment(NESTED, NESTED_ACTION, 7)
        ),
        "RandomTFEnvironment[1]": lambda: random_tf(1),
        "RandomTFEnvironment[7]": lambda: random_tf(7),
        "OneHotActionWrapper[7]": lambda: tf_wrappers.OneHotActionWrapper(
            random_tf(7, FLAT, CHOICE)
        ),
    }
    for name, make in parts.items():
        suite = make_suite(testing.TFEnvironmentConformance, make_environment=make)
        yield f"tf_environment-{name}", suite


# Networks.

OBSERVATION = tensor_spec.from_spec(FLAT)
NESTED_OBSERVATION = tensor_spec.from_spec(NESTED)
ACTION = tensor_spec.from_spec(CHOICE)
ACTIONS = tensor_spec.from_spec(NESTED_ACTION)


class Cast(keras.layers.Layer):
    """Flat floats of anything."""

    def call(self, inputs):
        flat = tf.reshape(tf.cast(inputs, tf.float32), [tf.shape(inputs)[0], -1])
        return tf.ensure_shape(flat, [None, int(np.prod(inputs.shape[1:]))])


def nested_kwargs():
    def dense():
        return keras.Sequential([Cast(), keras.layers.Dense(5)])

    return {
        "preprocessing_layers": {"image": dense(), "pair": (dense(), dense())},
        "preprocessing_combiner": keras.layers.Add(),
    }


FORCE_SPEC = tensor_spec.from_spec(FORCE)


def network_parts():
    small = {"fc_layer_params": (6,), "seed": 1}
    rnn = {"input_fc_layer_params": (6,), "lstm_size": (5,), "seed": 1}
    rnn["output_fc_layer_params"] = (4,)
    kinds = {
        "QNetwork": (networks.QNetwork, (ACTION,), small),
        "QRnnNetwork": (networks.QRnnNetwork, (ACTION,), rnn),
        "CategoricalQNetwork": (networks.CategoricalQNetwork, (ACTION,), small),
        "QuantileQNetwork": (networks.QuantileQNetwork, (ACTION, 5), small),
        "ImplicitQuantileNetwork": (
            networks.ImplicitQuantileNetwork,
            (ACTION, 5),
            small,
        ),
        "QNetwork-dueling": (
            networks.QNetwork,
            (ACTION,),
            {**small, "dueling_layer_params": (4,)},
        ),
        "ValueNetwork": (networks.ValueNetwork, (), small),
        "ValueRnnNetwork": (networks.ValueRnnNetwork, (), rnn),
        "EncodingNetwork": (networks.EncodingNetwork, (), small),
        "LSTMEncodingNetwork": (networks.LSTMEncodingNetwork, (), rnn),
        "ActorDistributionNetwork": (
            networks.ActorDistributionNetwork,
            (ACTIONS,),
            small,
        ),
        "ActorDistributionRnnNetwork": (
            networks.ActorDistributionRnnNetwork,
            (ACTIONS,),
            rnn,
        ),
    }
    parts = {}
    for name, (make, args, kwargs) in kinds.items():
        parts[f"{name}-flat"] = functools.partial(make, OBSERVATION, *args, **kwargs)
        parts[f"{name}-nested"] = functools.partial(nested_network, make, args, kwargs)
    for dtype in ("float16", "float64", "int32", "uint8"):
        spec = tensor_spec.from_spec(spec_of(dtype))
        parts[f"QNetwork-{dtype}"] = functools.partial(
            networks.QNetwork, spec, ACTION, **small
        )
    sequential = networks.Sequential
    parts["Sequential"] = lambda: sequential(
        [keras.layers.Dense(4), keras.layers.Dense(2)], input_spec=OBSERVATION
    )
    parts["Sequential-LSTM"] = lambda: sequential(
        [
            keras.layers.LSTM(4, return_state=True, return_sequences=True),
            keras.layers.Dense(2),
        ],
        input_spec=OBSERVATION,
    )
    parts["NestMap"] = lambda: sequential(
        [
            networks.NestMap({"a": keras.layers.Dense(3), "b": keras.layers.Dense(3)}),
            networks.NestFlatten(),
            keras.layers.Add(),
        ],
        input_spec={"a": OBSERVATION, "b": OBSERVATION},
    )
    parts["Sequential-Acme"] = lambda: sequential(
        [
            networks.CriticMultiplexer(),
            networks.LayerNormMLP([5, 4]),
            acme_networks.DuellingMLP(5, [4]),
        ],
        input_spec=(OBSERVATION, FORCE_SPEC),
    )
    parts["R2D2AtariNetwork"] = lambda: acme_networks.R2D2AtariNetwork(
        3,
        keras.layers.LSTMCell(4),
        {
            "observation": NESTED_OBSERVATION["image"],
            "action": ACTION,
            "reward": tf.TensorSpec([]),
        },
    )
    parts["MaskedSequential"] = lambda: acme_networks.MaskedSequential(
        [keras.layers.Dense(3)],
        {
            "observation": OBSERVATION,
            "legal_actions": tf.TensorSpec([3], tf.bool),
            "terminal": tf.TensorSpec([], tf.bool),
        },
    )
    parts["MaskSplitterNetwork"] = lambda: networks.MaskSplitterNetwork(
        lambda observation: observation,
        networks.QNetwork(OBSERVATION, ACTION, **small),
        input_tensor_spec=(OBSERVATION, tf.TensorSpec([3], tf.bool)),
    )
    force = {"force": FORCE_SPEC, "turn": tensor_spec.from_spec(FLAT)}
    parts["ActorNetwork"] = lambda: networks.ActorNetwork(OBSERVATION, force, (6,))
    parts["ActorRnnNetwork"] = lambda: networks.ActorRnnNetwork(
        OBSERVATION, force, None, (6,), (5,), (4,)
    )
    parts["CriticNetwork"] = lambda: networks.CriticNetwork(
        (OBSERVATION, force), None, (6,), None, (5,), None, (4,)
    )
    parts["CriticNetwork-nested"] = lambda: networks.CriticNetwork(
        (NESTED_OBSERVATION, force), joint_fc_layer_params=(4,), **nested_kwargs()
    )
    parts["CriticRnnNetwork"] = lambda: networks.CriticRnnNetwork(
        (OBSERVATION, force), None, (6,), (5,), (4,), (3,), (4,)
    )
    parts["MemoryCriticNetwork"] = lambda: networks.MemoryCriticNetwork(
        (OBSERVATION, force), None, (6,), (4,), (3,)
    )
    parts["CriticEnsembleNetwork"] = lambda: networks.CriticEnsembleNetwork(
        (OBSERVATION, force), 3, fc_layer_params=(4,)
    )
    for name, make in parts.items():
        suite = make_suite(
            testing.NetworkConformance,
            make_network=make,
            has_unused_variables=name == "CategoricalQNetwork",
        )
        yield f"network-{name}", suite


def nested_network(make, args, kwargs):
    return make(NESTED_OBSERVATION, *args, **kwargs, **nested_kwargs())


# Policies.

TIME_STEP = ts.time_step_spec(OBSERVATION)
Q_NETWORK = functools.partial(
    networks.QNetwork, OBSERVATION, ACTION, fc_layer_params=(6,), seed=1
)


def actor(time_step_spec=TIME_STEP, action=ACTIONS, **kwargs):
    return policies.ActorPolicy(
        time_step_spec,
        action,
        networks.ActorDistributionNetwork(
            time_step_spec.observation, action, fc_layer_params=(6,), seed=1, **kwargs
        ),
    )


def recurrent_actor():
    network = networks.ActorDistributionRnnNetwork(
        OBSERVATION, ACTIONS, lstm_size=(5,), seed=1
    )
    return policies.ActorPolicy(
        TIME_STEP, ACTIONS, network, policy_state_spec=network.state_spec
    )


def q_policy(**kwargs):
    return policies.QPolicy(TIME_STEP, ACTION, Q_NETWORK(), **kwargs)


class RemembersNoise(testing.PolicyConformance):
    """For noise that goes on from call to call: what a seed decides is a whole run."""

    def test_the_same_seed_gives_the_same_action(self):
        runs = []
        for policy in (self.make_policy(), self.make_policy()):
            time_step = self.make_time_step(policy, 7)
            runs.append([policy.action(time_step, seed=s).action for s in range(3)])
        np.testing.assert_array_equal(*runs)


def policy_parts():
    categorical = networks.CategoricalQNetwork(
        OBSERVATION, ACTION, fc_layer_params=(6,), seed=1
    )
    force = functools.partial(actor, action=FORCE_SPEC)
    parts = {
        "RandomTFPolicy": lambda: policies.RandomTFPolicy(TIME_STEP, ACTIONS),
        "RandomTFPolicy-log_probability": lambda: policies.RandomTFPolicy(
            TIME_STEP, ACTION, emit_log_probability=True
        ),
        "QPolicy": q_policy,
        "GreedyPolicy": lambda: policies.GreedyPolicy(q_policy()),
        "EpsilonGreedyPolicy": lambda: policies.EpsilonGreedyPolicy(q_policy(), 0.5),
        "BoltzmannPolicy": lambda: policies.BoltzmannPolicy(q_policy(), 0.5),
        "CategoricalQPolicy": lambda: policies.CategoricalQPolicy(
            TIME_STEP, ACTION, categorical, -1.0, 1.0
        ),
        "ActorPolicy": actor,
        "ActorPolicy-nested": lambda: actor(
            ts.time_step_spec(NESTED_OBSERVATION), **nested_kwargs()
        ),
        "ActorPolicy-recurrent": recurrent_actor,
        "GaussianPolicy": lambda: policies.GaussianPolicy(force(), 0.1),
        "OUNoisePolicy": lambda: policies.OUNoisePolicy(force(), 0.1, 0.1),
        "StateDependentNoisePolicy": lambda: policies.StateDependentNoisePolicy(
            force(
                continuous_projection_net=networks.StateDependentNoiseProjectionNetwork
            )
        ),
        "FixedPolicy": lambda: policies.FixedPolicy(1, TIME_STEP, ACTION),
        "TemporalActionSmoothing": lambda: policies.TemporalActionSmoothing(
            force(), 0.5
        ),
        "PolicyInfoUpdaterWrapper": lambda: policies.PolicyInfoUpdaterWrapper(
            policies.RandomTFPolicy(TIME_STEP, ACTION),
            {"double": tf.TensorSpec([], tf.int32)},
            lambda step: {"double": 2 * step.action},
        ),
    }
    for name, make in parts.items():
        base = RemembersNoise if name == "OUNoisePolicy" else testing.PolicyConformance
        yield f"policy-{name}", make_suite(base, make_policy=make)


# Replay buffers.


def buffer_parts():
    def ring(kind):
        return lambda data_spec, batch_size, max_length: kind(
            data_spec, batch_size=batch_size, max_length=max_length
        )

    def numpy_buffer(kind):
        return lambda data_spec, batch_size, max_length: kind(
            tensor_spec.to_nest_array_spec(data_spec), max_length
        )

    python = {
        "batch_size": 1,
        "is_checkpointable": False,
        "runs_in_graphs": False,
        "items_of": lambda items: items,
    }
    parts = {
        "TFUniformReplayBuffer[1]": (
            ring(replay_buffers.TFUniformReplayBuffer),
            {"batch_size": 1},
        ),
        "TFUniformReplayBuffer[7]": (
            ring(replay_buffers.TFUniformReplayBuffer),
            {"batch_size": 7},
        ),
        "TFPrioritizedReplayBuffer[1]": (
            ring(replay_buffers.TFPrioritizedReplayBuffer),
            {"batch_size": 1},
        ),
        "TFPrioritizedReplayBuffer[7]": (
            ring(replay_buffers.TFPrioritizedReplayBuffer),
            {"batch_size": 7},
        ),
        "PyUniformReplayBuffer": (
            numpy_buffer(replay_buffers.PyUniformReplayBuffer),
            python,
        ),
    }
    for name, (make, members) in parts.items():
        yield (
            f"replay_buffer-{name}",
            make_suite(
                testing.ReplayBufferConformance, make_replay_buffer=make, **members
            ),
        )


# Agents.


def nested_dqn():
    return agents.DqnAgent(
        ts.time_step_spec(NESTED_OBSERVATION),
        ACTION,
        q_network=nested_network(
            networks.QNetwork, (ACTION,), {"fc_layer_params": (6,), "seed": 1}
        ),
        target_q_network=nested_network(
            networks.QNetwork, (ACTION,), {"fc_layer_params": (6,), "seed": 2}
        ),
        optimizer=keras.optimizers.Adam(1e-2),
    )


def reinforce_without_baseline():
    return agents.ReinforceAgent(
        TIME_STEP,
        ACTIONS,
        actor_network=networks.ActorDistributionNetwork(
            OBSERVATION, ACTIONS, fc_layer_params=(6,), seed=1
        ),
        optimizer=keras.optimizers.Adam(1e-2),
    )


def agent_parts():
    arguments = {
        "DdpgAgent": {"n_step_update": 3},
        "D4pgAgent": {"n_step_update": 5},
        "Td3Agent": {"actor_update_period": 2},
    }
    kinds = every_agent.KINDS
    parts = {
        name: functools.partial(kind.make, TIME_STEP, **arguments.get(name, {}))
        for name, kind in kinds.items()
        if not kind.without_weights
    }
    parts |= {
        "DqnAgent-n_step": lambda: kinds["DqnAgent"].make(TIME_STEP, n_step_update=3),
        "DqnAgent-nested": nested_dqn,
        "ReinforceAgent-nested": reinforce_without_baseline,
        "DqnAgent-normalized": lambda: kinds["DqnAgent"].make(
            TIME_STEP,
            observation_normalizer=tensor_normalizer.StreamingTensorNormalizer(
                OBSERVATION
            ),
            reward_normalizer=reward_normalizer.RewardNormalizer(),
        ),
    }
    for name, make in parts.items():
        yield (
            f"agent-{name}",
            make_suite(
                testing.AgentConformance,
                make_agent=make,
                learns_last_observations=name.startswith("DreamerAgent"),
            ),
        )


SUITES = dict(
    [
        *environment_parts(),
        *tf_environment_parts(),
        *network_parts(),
        *policy_parts(),
        *buffer_parts(),
        *agent_parts(),
    ]
)


# One agent of each way of training: of steps, episodes, rollouts, by actors and
# critics, and of recorded actions.
FAST_AGENTS = (
    "agent-DqnAgent",
    "agent-ReinforceAgent",
    "agent-PPOClipAgent",
    "agent-SacAgent",
    "agent-BehavioralCloningAgent",
)
# These take long, and show what others show, too: the same network with other parts, or
# another one of its base, or more members of a batch of a wrapper's environments.
SLOW = (
    *(name for name in SUITES if name.startswith("agent-") and name not in FAST_AGENTS),
    *(f"environment-{name}[7]" for name in WRAPPERS if name != "OneHotActionWrapper"),
    "environment-ParallelPyEnvironment[1]",
    "environment-ParallelPyEnvironment[2]",
    "network-ActorDistributionNetwork-nested",
    "network-ActorDistributionRnnNetwork-flat",
    "network-ActorDistributionRnnNetwork-nested",
    "network-ActorRnnNetwork",
    "network-CriticEnsembleNetwork",
    "network-CriticRnnNetwork",
    "network-CategoricalQNetwork-nested",
    "network-CriticNetwork-nested",
    "network-EncodingNetwork-nested",
    "network-ImplicitQuantileNetwork-nested",
    "network-LSTMEncodingNetwork-flat",
    "network-LSTMEncodingNetwork-nested",
    "network-MemoryCriticNetwork",
    "network-QNetwork-dueling-flat",
    "network-QNetwork-dueling-nested",
    "network-QNetwork-float16",
    "network-QNetwork-float64",
    "network-QNetwork-int32",
    "network-QNetwork-nested",
    "network-QRnnNetwork-nested",
    "network-QuantileQNetwork-nested",
    "network-R2D2AtariNetwork",
    "network-Sequential-Acme",
    "network-Sequential-LSTM",
    "network-ValueNetwork-nested",
    "network-ValueRnnNetwork-flat",
    "network-ValueRnnNetwork-nested",
    "policy-ActorPolicy-nested",
    "policy-ActorPolicy-recurrent",
    "policy-RandomTFPolicy-log_probability",
    "replay_buffer-TFPrioritizedReplayBuffer[1]",
    "replay_buffer-TFUniformReplayBuffer[1]",
    "tf_environment-OneHotActionWrapper[7]",
    "tf_environment-RandomTFEnvironment[7]",
)


def test_what_is_slow_and_what_is_fast_exists():
    assert {*SLOW, *FAST_AGENTS} <= set(SUITES)


@pytest.mark.parametrize("name", some_slow(SUITES, slow=SLOW))
def test_it_conforms(name):
    SUITES[name].run_all()
