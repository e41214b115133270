import dm_env
import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl import acme, loggers
from tfrl.acme.agents.tf import actors
from tfrl.networks import network, value_rnn_network
from tfrl.policies import py_policy, random_tf_policy
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts


class Recorder:
    """An adder and a variable client that records its calls."""

    def __init__(self):
        self.calls = []

    def add_first(self, timestep):
        self.calls.append(("add_first", timestep))

    def add(self, action, next_timestep, extras=()):
        self.calls.append(("add", action, next_timestep, extras))

    def update(self, wait=False):
        self.calls.append(("update", wait))


FIRST = dm_env.restart(np.array([1.0, 2.0], np.float32))
MIDDLE = dm_env.transition(0.5, np.array([3.0, 4.0], np.float32))


def test_a_network_acts_without_a_batch_and_is_traced_once():
    traces = []

    class Doubling(keras.layers.Layer):
        def call(self, inputs, training=None):
            traces.append(1)
            return {"torque": 2 * inputs}

    actor = actors.FeedForwardActor(Doubling())
    actor.select_action(FIRST.observation)
    del traces[:]
    for _ in range(3):
        action = actor.select_action(MIDDLE.observation)
    assert action["torque"].tolist() == [6, 8]
    assert not traces


class Normal(network.Network):
    def call(self, observation, step_type=None, network_state=(), training=False):
        return tfp.distributions.Normal(observation, 1.0), network_state


def test_distributions_are_sampled_by_the_seed():
    def draw(seed):
        actor = actors.FeedForwardActor(Normal(), seed=seed)
        observation = np.full([400], 3, np.float32)
        return np.stack([actor.select_action(observation) for _ in range(2)])

    one, same, other = draw(1), draw(1), draw(2)
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()
    assert (one[0] != one[1]).all()
    # 0.05 is one standard deviation of the mean.
    np.testing.assert_allclose(one.mean(1), 3, atol=0.25)
    np.testing.assert_allclose(one.std(1), 1, atol=0.2)


def test_time_steps_go_to_the_adder_and_updates_to_the_client():
    adder, client = Recorder(), Recorder()
    actor = actors.FeedForwardActor(keras.layers.Dense(1), adder, client)
    actor.observe_first(FIRST)
    actor.observe(np.array([7.0]), MIDDLE)
    actor.update()
    actor.update(wait=True)
    assert adder.calls == [
        ("add_first", FIRST),
        ("add", np.array([7.0]), MIDDLE, ()),
    ]
    assert client.calls == [("update", False), ("update", True)]


def test_without_them_an_actor_acts_as_before():
    actor = actors.FeedForwardActor(keras.layers.Dense(1))
    action = actor.select_action(MIDDLE.observation)
    actor.observe_first(FIRST)
    actor.observe(np.array([7.0]), MIDDLE)
    actor.update()
    assert actor.select_action(MIDDLE.observation) == action


SPEC = ts.time_step_spec(array_spec.ArraySpec((2,), np.float32))
ACTION = array_spec.BoundedArraySpec((), np.int64, 0, 9)


class Counting(py_policy.PyPolicy):
    """Acts by the number of steps since the episode's first, and informs of it."""

    def __init__(self):
        count = array_spec.ArraySpec((), np.int64)
        super().__init__(SPEC, ACTION, count, {"count": count})
        self.time_steps = []

    def _action(self, time_step, policy_state, seed=None):
        self.time_steps.append(time_step)
        return policy_step.PolicyStep(
            policy_state + 1, policy_state + 1, {"count": 10 * policy_state}
        )


def test_the_policys_state_begins_again_at_each_episode_and_its_info_is_stored():
    adder = Recorder()
    actor = actors.PolicyActor(Counting(), adder)
    for _ in range(2):
        actor.observe_first(FIRST)
        taken = []
        for _ in range(3):
            taken.append(int(actor.select_action(MIDDLE.observation)))
            actor.observe(taken[-1], MIDDLE)
        assert taken == [1, 2, 3]
    stored = [call[3]["count"] for call in adder.calls if call[0] == "add"]
    assert stored == [0, 10, 20, 0, 10, 20]


def test_the_policy_sees_time_steps_of_its_specs():
    policy = Counting()
    actor = actors.PolicyActor(policy)
    actor.observe_first(FIRST._replace(observation=np.ones(2)))
    actor.select_action(np.ones(2))
    actor.observe(1, dm_env.termination(np.float64(0.5), np.ones(2)))
    actor.select_action([5, 6])
    first, second = policy.time_steps
    assert (first.step_type, first.reward, first.discount) == (ts.StepType.FIRST, 0, 1)
    assert second.step_type == ts.StepType.LAST
    assert (second.reward, second.discount) == (0.5, 0)
    assert second.observation.tolist() == [5, 6]
    for step in (first, second):
        leaves = (step.reward, step.discount, step.observation)
        assert {leaf.dtype for leaf in leaves} == {np.dtype(np.float32)}


def test_a_policy_on_tensors_acts_by_the_seed_in_an_environment_loop():
    environment = acme.wrappers.GymWrapper(
        gymnasium.make("Pendulum-v1", max_episode_steps=5)
    )
    spec = acme.make_environment_spec(environment)
    policy = random_tf_policy.RandomTFPolicy(
        tensor_spec.from_spec(ts.time_step_spec(spec.observations)),
        tensor_spec.from_spec(spec.actions),
    )

    def run(seed):
        environment.seed(0)
        adder = Recorder()
        loop = acme.EnvironmentLoop(
            environment,
            actors.PolicyActor(policy, adder, seed=seed),
            logger=loggers.InMemoryLogger(),
        )
        loop.run(num_episodes=1)
        return [call[1].tolist() for call in adder.calls[1:]]

    assert len(run(1)) == 5
    assert run(1) == run(1)
    assert run(1) != run(2)


class Counter(network.Network):
    """Acts by the number of steps since the start, of which it is the state."""

    def __init__(self):
        super().__init__(tf.TensorSpec([2]), tf.TensorSpec([1]))

    def call(self, observation, step_type=None, network_state=(), training=False):
        return network_state, network_state + 1


@pytest.mark.parametrize("stores", [True, False])
def test_a_recurrent_actor_keeps_and_stores_the_state_of_an_episode(stores):
    adder = Recorder()
    actor = actors.RecurrentActor(Counter(), adder, store_recurrent_state=stores)
    for _ in range(2):
        actor.observe_first(FIRST)
        for expected in range(3):
            action = actor.select_action(MIDDLE.observation)
            assert action.tolist() == [expected]
            actor.observe(action, MIDDLE)
    extras = [call[3] for call in adder.calls if call[0] == "add"]
    if stores:
        assert [state.tolist() for (state,) in extras] == [[0], [1], [2]] * 2
    else:
        assert extras == [()] * 6


def test_a_recurrent_actor_samples_by_its_seed():
    class Walk(Counter):
        def call(self, observation, step_type=None, network_state=(), training=False):
            return tfp.distributions.Normal(network_state, 1.0), network_state

    def run(seed):
        actor = actors.RecurrentActor(Walk(), seed=seed)
        return [float(actor.select_action(FIRST.observation)[0]) for _ in range(3)]

    assert run(1) == run(1)
    assert len(set(run(1))) == 3
    assert run(1) != run(2)


def test_recurrent_networks_and_other_objects_are_refused_with_the_remedy():
    recurrent = value_rnn_network.ValueRnnNetwork(
        tf.TensorSpec([2], tf.float32), lstm_size=(4,)
    )
    with pytest.raises(ValueError, match="give it to RecurrentActor"):
        actors.FeedForwardActor(recurrent)
    with pytest.raises(ValueError, match="give this one to FeedForwardActor"):
        actors.RecurrentActor(keras.layers.Dense(1))
    with pytest.raises(TypeError, match="give a network to FeedForwardActor"):
        actors.PolicyActor(keras.layers.Dense(1))
