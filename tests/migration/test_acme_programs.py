"""Programs for Acme's TensorFlow half with Sonnet's modules, after the one rename.

They are written as forks of Acme's agents are: networks by `snt`, own learners, actors,
adders, savers and loops. Where Sonnet is not installed, a module made here stands for
it, with the few names that the programs use.
"""

import contextlib
import importlib.util
import pathlib
import re
import sys
import textwrap
import types

import pytest
import tensorflow as tf

PAGE = pathlib.Path(__file__).parents[2] / "docs/from_acme.md"


class Linear(tf.Module):
    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size
        self.w = None

    def __call__(self, inputs):
        if self.w is None:
            size = inputs.shape[-1]
            start = tf.random.truncated_normal([size, self.output_size]) / size**0.5
            self.w = tf.Variable(start)
            self.b = tf.Variable(tf.zeros([self.output_size]))
        return inputs @ self.w + self.b


class Sequential(tf.Module):
    def __init__(self, layers):
        super().__init__()
        self._layers = list(layers)

    def __call__(self, inputs, *args):
        for layer in self._layers:
            inputs, args = layer(inputs, *args), ()
        return inputs


class VanillaRNN(tf.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self._size = hidden_size
        self._linear = Linear(hidden_size)

    def initial_state(self, batch_size):
        return tf.zeros([batch_size, self._size])

    def __call__(self, inputs, prev_state):
        state = tf.tanh(self._linear(tf.concat([inputs, prev_state], axis=1)))
        return state, state


class DeepRNN(Sequential):
    def initial_state(self, batch_size):
        cores = [x for x in self._layers if hasattr(x, "initial_state")]
        return tuple(core.initial_state(batch_size) for core in cores)

    def __call__(self, inputs, prev_state):
        states, following = iter(prev_state), []
        for layer in self._layers:
            if hasattr(layer, "initial_state"):
                inputs, state = layer(inputs, next(states))
                following.append(state)
            else:
                inputs = layer(inputs)
        return inputs, tuple(following)


class SGD(tf.Module):
    def __init__(self, learning_rate):
        super().__init__()
        self._rate = learning_rate

    def apply(self, updates, parameters):
        for update, parameter in zip(updates, parameters, strict=True):
            parameter.assign_sub(self._rate * update)


def static_unroll(core, inputs, state, sequence_length):
    outputs = []
    for t in range(sequence_length):
        output, state = core(inputs[t], state)
        outputs.append(output)
    return tf.stack(outputs), state


def stand_in():
    sonnet = types.ModuleType("sonnet")
    for part in (Linear, Sequential, VanillaRNN, DeepRNN, static_unroll):
        setattr(sonnet, part.__name__, part)
    sonnet.Module = tf.Module
    sonnet.optimizers = types.SimpleNamespace(SGD=SGD)
    return sonnet


@contextlib.contextmanager
def importable_sonnet():
    if importlib.util.find_spec("sonnet") is not None:
        yield
        return
    sys.modules["sonnet"] = stand_in()
    try:
        yield
    finally:
        del sys.modules["sonnet"]


COMMON = """
import copy
import acme
from acme import core, datasets, specs, wrappers
from acme.adders import reverb as adders
from acme.agents.tf import actors
from acme.tf import losses, networks, savers as tf2_savers
from acme.tf import utils as tf2_utils, variable_utils
from acme.utils import counting, loggers
import dm_env
import numpy as np
import reverb
import sonnet as snt
import tensorflow as tf


class Corridor(dm_env.Environment):
    '''Five cells; going right at the end is worth 1.'''

    def __init__(self, continuous=False):
        self._continuous = continuous

    def reset(self):
        self._cell, self._time = 0, 0
        return dm_env.restart(self._observation())

    def step(self, action):
        right = action[0] > 0 if self._continuous else action == 1
        self._cell = max(self._cell + (1 if right else -1), 0)
        self._time += 1
        if self._cell == 5:
            return dm_env.termination(1.0, self._observation())
        if self._time == 12:
            return dm_env.truncation(0.0, self._observation())
        return dm_env.transition(0.0, self._observation())

    def _observation(self):
        return np.eye(6, dtype=np.float32)[self._cell]

    def observation_spec(self):
        return specs.BoundedArray((6,), np.float32, 0, 1)

    def action_spec(self):
        if self._continuous:
            return specs.BoundedArray((1,), np.float32, -1, 1)
        return specs.DiscreteArray(2, dtype=np.int32)


def start_server(signature, remover=None):
    table = reverb.Table(
        name=adders.DEFAULT_PRIORITY_TABLE,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=1000,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=signature,
    )
    return reverb.Server([table], port=None)


class CountingLearner(core.Learner, tf2_savers.TFSaveable):
    '''What the learners below share: variables, checkpoints, logs and counts.'''

    def __init__(self, network, optimizer, dataset, directory):
        self._network = network
        self._target_network = copy.deepcopy(network)
        self._optimizer = optimizer
        self._iterator = iter(dataset)
        self._counter = counting.Counter(prefix="learner")
        self._logger = loggers.InMemoryLogger()
        self._num_steps = tf.Variable(0)
        self._checkpointer = tf2_utils.Checkpointer(
            objects_to_save=self.state,
            objects_to_snapshot={"network": network},
            directory=directory,
            add_uid=False,
        )

    def step(self):
        fetches = self._step(next(self._iterator).data)
        counts = self._counter.increment(steps=1)
        self._checkpointer.save()
        self._logger.write({**fetches, **counts})

    @tf.function
    def _step(self, sample):
        with tf.GradientTape() as tape:
            loss = self._loss(sample)
        variables = self._network.trainable_variables
        gradients = tape.gradient(loss, variables)
        gradients, _ = tf.clip_by_global_norm(gradients, 10.0)
        self._optimizer.apply(gradients, variables)
        if self._num_steps % 5 == 0:
            pairs = zip(self._network.variables, self._target_network.variables)
            for source, target in pairs:
                target.assign(source)
        self._num_steps.assign_add(1)
        return {"loss": loss}

    def get_variables(self, names):
        return [tf2_utils.to_numpy(self._network.variables)]

    @property
    def state(self):
        return {
            "network": self._network,
            "target_network": self._target_network,
            "num_steps": self._num_steps,
            "counter": self._counter,
        }
"""

DQN = """
class DQNLearner(CountingLearner):
    def _loss(self, sample):
        o_tm1, a_tm1, r_t, d_t, o_t = sample[:5]
        q_tm1 = tf.gather(self._network(o_tm1), a_tm1, batch_dims=1)
        best = tf.argmax(self._network(o_t), axis=1)
        q_t = tf.gather(self._target_network(o_t), best, batch_dims=1)
        target = tf.cast(r_t, tf.float32) + 0.9 * tf.cast(d_t, tf.float32) * q_t
        return tf.reduce_mean(losses.huber(tf.stop_gradient(target) - q_tm1, 1.0))


environment = wrappers.SinglePrecisionWrapper(Corridor())
spec = acme.make_environment_spec(environment)
# A torso of Acme, which is a Keras layer, in a Sequential of Sonnet.
network = snt.Sequential(
    [networks.LayerNormMLP([16], activate_final=True), snt.Linear(2)]
)
tf2_utils.create_variables(network, [spec.observations])
assert len(network.trainable_variables) == 6
epsilon = tf.Variable(0.5)


def explore(q_values):
    random = tf.random.uniform(tf.shape(q_values)[:1], maxval=2, dtype=tf.int32)
    is_random = tf.random.uniform(tf.shape(q_values)[:1]) < epsilon
    return tf.where(is_random, random, tf.argmax(q_values, 1, output_type=tf.int32))


server = start_server(adders.NStepTransitionAdder.signature(spec))
address = f"localhost:{server.port}"
adder = adders.NStepTransitionAdder(
    client=reverb.Client(address), n_step=2, discount=0.9
)
dataset = datasets.make_reverb_dataset(server_address=address, batch_size=16)
behavior = snt.Sequential([network, explore])
acting = copy.deepcopy(network)
learner = DQNLearner(network, snt.optimizers.SGD(0.1), dataset, DIRECTORY)
actor = actors.FeedForwardActor(behavior, adder)
logger = loggers.InMemoryLogger()
loop = acme.EnvironmentLoop(
    environment, actor, counter=counting.Counter(), logger=logger
)
loop.run(num_episodes=8)
for _ in range(STEPS):
    learner.step()
assert learner._logger.data[-1]["learner_steps"] == STEPS
learner._checkpointer.save(force=True)
client = variable_utils.VariableClient(learner, {"policy": acting.variables})
client.update_and_wait()
cells = np.eye(6, dtype=np.float32)[:5]
np.testing.assert_allclose(acting(cells), network(cells), rtol=1e-5)
loaded = tf.saved_model.load(f"{DIRECTORY}/snapshots/network")
assert loaded(cells).shape == [5, 2]
again = DQNLearner(
    copy.deepcopy(acting), snt.optimizers.SGD(0.1), dataset, DIRECTORY
)
assert again._num_steps.numpy() == STEPS
assert again._counter.get_counts()["learner_steps"] == STEPS
assert (np.argmax(network(cells), axis=1) == 1).all()
server.stop()
"""

R2D2 = """
class R2D2Learner(CountingLearner):
    def _loss(self, sample):
        data = tf2_utils.batch_to_sequence(sample)
        start = tf.nest.map_structure(lambda x: x[0], data.extras[0])
        q, _ = snt.static_unroll(self._network, data.observation, start, 4)
        target_q, _ = snt.static_unroll(
            self._target_network, data.observation, start, 4
        )
        q_tm1 = tf.gather(q[:-1], data.action[:-1], batch_dims=2)
        v_t = tf.reduce_max(target_q[1:], axis=-1)
        discount = 0.9 * tf.cast(data.discount[:-1], tf.float32)
        errors = tf.cast(data.reward[:-1], tf.float32) + discount * v_t - q_tm1
        return tf.reduce_mean(tf.square(errors))


environment = wrappers.SinglePrecisionWrapper(Corridor())
spec = acme.make_environment_spec(environment)
network = snt.DeepRNN([snt.Linear(8), tf.nn.relu, snt.VanillaRNN(4), snt.Linear(2)])
tf2_utils.create_variables(network, [spec.observations])
state = tf2_utils.squeeze_batch_dim(network.initial_state(1))
server = start_server(
    adders.SequenceAdder.signature(spec, (state,), sequence_length=4)
)
adder = adders.SequenceAdder(
    client=server.localhost_client(), period=2, sequence_length=4
)
behavior = snt.DeepRNN([network, lambda q: tf.argmax(q, -1, output_type=tf.int32)])
actor = actors.RecurrentActor(behavior, adder)
dataset = datasets.make_reverb_dataset(
    server_address=f"localhost:{server.port}", batch_size=4
)
acme.EnvironmentLoop(environment, actor).run(num_episodes=2)
learner = R2D2Learner(network, snt.optimizers.SGD(0.1), dataset, DIRECTORY)
learner.run(STEPS)
assert np.isfinite(learner._logger.data[-1]["loss"])
server.stop()
"""

STRUCTURED = """
from acme.adders.reverb import structured

environment = wrappers.SinglePrecisionWrapper(Corridor())
spec = acme.make_environment_spec(environment)
step_spec = structured.create_step_spec(spec)
configs = structured.create_n_step_transition_config(step_spec, n_step=3)
server = start_server(reverb.structured_writer.infer_signature(configs, step_spec))
adder = structured.StructuredAdder(
    client=server.localhost_client(),
    max_in_flight_items=5,
    configs=configs,
    step_spec=step_spec,
)
policy = tf2_utils.to_sonnet_module(lambda o: tf.ones(tf.shape(o)[:1], tf.int32))
actor = actors.FeedForwardActor(policy, adder)
acme.EnvironmentLoop(environment, actor).run(num_episodes=1)
dataset = datasets.make_reverb_dataset(
    server_address=f"localhost:{server.port}",
    batch_size=8,
    postprocess=lambda sample: reverb.ReplaySample(
        info=sample.info,
        data=structured.n_step_from_trajectory(sample.data, agent_discount=0.5),
    ),
)
batch = next(iter(dataset)).data
# The reward 1 of the fifth step is reached after one, two or three steps.
assert set(batch.reward.numpy()) <= {0.0, 0.25, 0.5, 1.0}
assert batch.next_observation.shape == [8, 6]
server.stop()
"""

D4PG = """
from acme.agents.tf import d4pg

environment = wrappers.SinglePrecisionWrapper(Corridor(continuous=True))
spec = acme.make_environment_spec(environment)
policy_network = snt.Sequential(
    [
        networks.LayerNormMLP((8, 8), activate_final=True),
        networks.NearZeroInitializedLinear(1),
        networks.TanhToSpec(spec.actions),
    ]
)
critic_network = snt.Sequential(
    [
        networks.CriticMultiplexer(),
        networks.LayerNormMLP((8, 8), activate_final=True),
        networks.DiscreteValuedHead(vmin=0.0, vmax=1.0, num_atoms=11),
    ]
)
before = copy.deepcopy(policy_network)
agent = d4pg.D4PG(
    environment_spec=spec,
    policy_network=policy_network,
    critic_network=critic_network,
    observation_network=tf2_utils.batch_concat,
    batch_size=8,
    samples_per_insert=8.0,
    min_replay_size=8,
    sigma=1.0,
    logger=loggers.NoOpLogger(),
    checkpoint=False,
)
acme.EnvironmentLoop(environment, agent, logger=loggers.NoOpLogger()).run(2)
# The weights of the agent's policy are those of the modules' Keras layers.
assert len(policy_network.trainable_variables) == 8
(held,) = agent.learner.get_variables(["policy"])
for variable, array in zip(policy_network.variables, held):
    np.testing.assert_array_equal(variable, array)
"""


@pytest.mark.parametrize(
    ("program", "steps"),
    [
        pytest.param(STRUCTURED, 0, id="structured adder"),
        pytest.param(DQN, 300, id="dqn", marks=pytest.mark.slow),
        pytest.param(R2D2, 3, id="r2d2", marks=pytest.mark.slow),
        pytest.param(D4PG, 0, id="d4pg", marks=pytest.mark.slow),
    ],
)
def test_a_program_with_modules_runs_after_the_rename(program, steps, tmp_path):
    tf.random.set_seed(0)
    (rename,) = re.findall(r"^sed -i '(.*)' your_script\.py$", PAGE.read_text(), re.M)
    source = textwrap.dedent(COMMON + program)
    for pattern, replacement in re.findall(r"s/(.*?)/(.*?)/g?", rename):
        source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
    assert "from tfrl.acme.tf import" in source
    path = tmp_path / "program.py"  # AutoGraph reads the source there.
    path.write_text(source)
    names = {"__name__": "program", "STEPS": steps, "DIRECTORY": str(tmp_path / "run")}
    with importable_sonnet():
        exec(compile(source, str(path), "exec"), names)
