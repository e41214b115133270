"""Features that work without private names of TensorFlow and Keras, or raise errors."""

import pathlib
import re
import subprocess
import sys
import textwrap

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import train
from tfrl.agents.dqn import dqn_agent
from tfrl.compilation import fast_dataset, fast_function, internals
from tfrl.compilation.python_calls import host_calls
from tfrl.drivers import dynamic_step_driver
from tfrl.environments import native, suite_gym, tf_py_environment
from tfrl.networks import q_network
from tfrl.networks.construction import seeding
from tfrl.policies import policy_saver, random_tf_policy
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.specs import tensor_spec
from tfrl.utils import nest_utils
from tfrl.utils.optimization import optimizers

CLASSES = "__class__"
EVERY = [*internals.NAMES, internals.XLA_FFI_API, "_frameskip", CLASSES]


@pytest.fixture
def take_away(monkeypatch):
    """Hides names from the package, not from TensorFlow and Keras, which need them."""

    def hide(*names):
        look_up = internals.look_up

        def look_up_others(owner, name):
            if name in names:
                raise AttributeError(name)
            return look_up(owner, name)

        def refuse(thing, kind):
            raise TypeError("__class__ assignment: object layout differs")

        monkeypatch.setattr(internals, "look_up", look_up_others)
        if CLASSES in names:
            monkeypatch.setattr(internals, "change_class", refuse)

    return hide


def make_parts(environment=None):
    environment = environment or native.load("CartPole-v1", seed=1)
    specs = environment.observation_spec(), environment.action_spec()
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=q_network.QNetwork(*specs, fc_layer_params=(2,), seed=1),
        optimizer=keras.optimizers.Adam(0.1),
        seed=1,
    )
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=1, max_length=20, seed=1
    )
    return environment, agent, buffer


def train_by_hand():
    """Collects, stores, samples and trains; returns the weights."""
    environment, agent, buffer = make_parts()
    agent.initialize()
    before = [v.numpy() for v in agent.variables()]
    driver = dynamic_step_driver.DynamicStepDriver(
        environment, agent.collect_policy, [buffer.add_batch], num_steps=4
    )
    time_step = environment.reset()
    iterator = None
    for _ in range(4):
        time_step, _ = driver.run(time_step)
        iterator = iterator or iter(buffer.as_dataset(4, num_steps=2).prefetch(1))
        experience, _ = next(iterator)
        loss = agent.train(experience).loss
        assert np.isfinite(loss)
    after = [v.numpy() for v in agent.variables()]
    assert any(np.any(a != b) for a, b in zip(after, before, strict=True))
    assert int(agent.train_step_counter) == 4
    return after


def make_loop(jit_compile, environment=None, **kwargs):
    return train.OffPolicyLoop(
        *make_parts(environment),
        initial_collect_steps=4,
        sample_batch_size=4,
        seed=1,
        jit_compile=jit_compile,
        **kwargs,
    )


def test_the_installed_releases_have_every_name():
    assert set(internals.available().values()) == {True}


@pytest.fixture(scope="module")
def asked_for():
    """The names that training asks for."""
    names = {CLASSES}
    look_up = internals.look_up

    def remember(owner, name):
        names.add(name)
        return look_up(owner, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(internals, "look_up", remember)
        train_by_hand()
    return names


# The test below trains without any of them.
@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_dqn_trains_without_it(name, take_away, asked_for):
    take_away(name)
    if name in asked_for:  # The others make no difference.
        train_by_hand()
    assert internals.available().get(name, False) is False


@pytest.mark.slow
def test_dqn_trains_without_any_of_them_from_the_import_on():
    program = f"""
        import sys
        sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
        from tfrl.compilation import internals

        def look_up(owner, name):
            raise AttributeError(name)

        def change_class(thing, kind):
            raise TypeError("refused")

        internals.look_up = look_up
        internals.change_class = change_class
        import test_internals
        test_internals.train_by_hand()
        assert not any(internals.available().values())
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


# --- What is only for speed is slower, and the same.


def test_adam_takes_keras_way_to_the_same_weights(take_away):
    fused = train_by_hand()
    for name in ("_get_variable_index", "_momentums", "_velocities"):
        take_away(name)
        variable = keras.Variable([1.0])
        adapter = optimizers.OptimizerAdapter(keras.optimizers.Adam(), [variable])
        assert adapter._apply == adapter._apply_keras
    for one, two in zip(train_by_hand(), fused, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def test_an_optimizer_of_these_variables_is_copied_if_nobody_can_tell(take_away):
    variable = keras.Variable([1.0])
    adam = keras.optimizers.Adam(0.5)
    adam.build([variable])
    assert optimizers.OptimizerAdapter(adam, [variable]).optimizer is adam
    take_away("_trainable_variables")
    copy = optimizers.OptimizerAdapter(adam, [variable]).optimizer
    assert copy is not adam
    assert float(copy.learning_rate) == 0.5


@pytest.mark.parametrize("name", ["_call_flat", "_function_type", CLASSES])
def test_a_fast_function_is_a_plain_one(name, take_away):
    take_away(name)
    double = fast_function.fast_function(lambda x: 2 * x)
    assert [int(double(tf.constant(i))) for i in range(5)] == [0, 2, 4, 6, 8]
    assert double.experimental_get_tracing_count() == 1
    if name == CLASSES:
        assert type(double) is type(tf.function(lambda: None))
    else:
        assert set(double._fast_paths.values()) == {False}


def test_a_fast_function_whose_trace_takes_other_arguments_is_a_plain_one(monkeypatch):
    double = fast_function.fast_function(lambda x: 2 * x)
    calls = []

    def call_flat(tensors):
        calls.append(tensors)
        raise TypeError("call_flat() takes 3 positional arguments but 2 were given")

    find_trace = internals.find_trace
    monkeypatch.setattr(
        internals,
        "find_trace",
        lambda *args: (lambda *_: call_flat(1), *find_trace(*args)[1:]),
    )
    assert [int(double(tf.constant(i))) for i in range(6)] == [0, 2, 4, 6, 8, 10]
    assert len(calls) == 1


def test_a_fast_dataset_is_a_plain_one(take_away):
    take_away(CLASSES)
    dataset = tf.data.Dataset.range(3)
    kind = type(dataset)
    assert type(fast_dataset.fast_dataset(dataset)) is kind
    assert [int(x) for x in dataset] == [0, 1, 2]


def test_the_iterator_of_a_fast_dataset_is_a_plain_one(take_away):
    dataset = fast_dataset.fast_dataset(tf.data.Dataset.range(3))
    take_away(CLASSES)
    assert type(iter(dataset)) is type(iter(tf.data.Dataset.range(3)))
    assert [int(x) for x in dataset] == [0, 1, 2]


def test_an_iterator_whose_operation_takes_other_arguments_is_a_plain_one(monkeypatch):
    calls = []

    def get_next(**kwargs):
        calls.append(kwargs)
        raise TypeError("unexpected keyword argument 'output_types'")

    dataset = fast_dataset.fast_dataset(tf.data.Dataset.range(4))
    iterator = iter(dataset)
    assert int(next(iterator)) == 0
    iterator._get_next = get_next
    assert [int(x) for x in iterator] == [1, 2, 3]
    assert len(calls) == 1


def test_layers_are_found_without_keras_own_walk(take_away):
    class Block(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.first = keras.layers.Dense(1)
            self.others = [keras.layers.Dense(2), {"a": keras.layers.Dropout(0.5)}]

    model = Block()
    model.inner = [Block(), keras.layers.Dense(1)]
    expected = {
        (own, recursive): {
            id(x) for x in internals.flatten_layers(model, own, recursive)
        }
        for own in (True, False)
        for recursive in (True, False)
    }
    take_away("_flatten_layers")
    for (own, recursive), layers in expected.items():
        found = internals.flatten_layers(model, own, recursive)
        assert {id(x) for x in found} == layers
        assert len(found) == len(layers)


def test_a_copied_lambda_layer_infers_its_shape(take_away):
    layer = keras.layers.Lambda(lambda x: x[..., :2], output_shape=(2,))
    take_away("_output_shape")
    copy = seeding.copy_layer(layer)
    assert copy.compute_output_shape((5, 3)) == (5, 2)


def test_a_game_that_skips_frames_is_known_by_its_spec(take_away):
    class Game(gymnasium.Env):
        _frameskip = 4

    game = Game()
    assert internals.frames_skipped(game) == 4
    take_away("_frameskip")
    assert internals.frames_skipped(game) == 1
    game.spec = gymnasium.envs.registration.EnvSpec("G-v0", kwargs={"frameskip": 3})
    assert internals.frames_skipped(game) == 3


def test_a_network_tracks_its_variables(take_away):
    environment = native.load("CartPole-v1")
    specs = environment.observation_spec(), environment.action_spec()
    network = q_network.QNetwork(*specs, fc_layer_params=(2,))
    take_away("_trackable_children")
    assert len(tf.train.TrackableView.children(network)) == len(network.variables) == 4


@pytest.mark.slow
def test_loops_are_compiled_only_where_xla_is_known(take_away):
    take_away("GraphOrParentsInXlaContext")
    assert not make_loop("auto")._jit_compile
    assert np.isfinite(make_loop("auto").run(2).loss)
    with pytest.raises(ValueError, match=error("GraphOrParentsInXlaContext")):
        make_loop(True)


def test_loops_with_python_are_compiled_only_where_it_can_be_called(take_away):
    take_away("xla_call_module")

    def cart_pole():
        return tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v1"))

    assert re.match(f"host_call: {error('xla_call_module')}", host_calls.obstacle())
    assert not make_loop("auto", cart_pole())._jit_compile
    assert make_loop("auto")._jit_compile
    with pytest.raises(ValueError, match=error("xla_call_module")):
        make_loop(True, cart_pole())


def test_the_variables_that_a_graph_assigns_to(take_away):
    read, assigned, in_loop = (tf.Variable(0.0) for _ in range(3))

    @tf.function(autograph=False)
    def run():
        assigned.assign(read)
        tf.while_loop(
            lambda i: i < 2, lambda i: (i + 1, in_loop.assign_add(read))[:1], (0,)
        )

    graph = run.get_concrete_function().graph
    found = internals.changed_variables(graph)
    assert {id(v) for v in found} == {id(assigned), id(in_loop)}
    take_away("get_read_only_resource_input_indices_graph")
    assert internals.changed_variables(graph) == []


def test_matrices_are_multiplied_without_a_barrier(take_away):
    take_away("xla_optimization_barrier")
    (tensor,) = internals.xla_optimization_barrier([tf.constant(1)])
    assert int(tensor) == 1


# --- What cannot do without raises one error.


def error(name):
    return (
        rf"needs [\w.]*{re.escape(name)}.*, a private name that TensorFlow "
        rf"{re.escape(tf.__version__)} and Keras {re.escape(keras.__version__)} do not "
        r"have, expected tensorflow>=.*; install those, or \w+"
    )


@pytest.mark.parametrize(
    "name",
    [
        "_pfor_converter_registry",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                "GraphOrParentsInXlaContext",
                "variable_accessed",
                "wrap",
                CLASSES,
            )
        ),
    ],
)
def test_a_sweep_says_what_is_missing(name, take_away):
    take_away(name)
    with pytest.raises(internals.MissingNameError, match=f"^sweep: {error(name)}"):
        train.sweep(
            lambda seed: make_loop(False, sampling="variables"),
            [1, 2],
            num_iterations=1,
            eval_interval=1,
        )


def ragged():
    spec = tf.RaggedTensorSpec([1, None, 3], tf.float32)
    return nest_utils.remove_singleton_batch_spec_dim(spec, 1)


def concrete_functions():
    environment, _, _ = make_parts()
    policy = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    saver = policy_saver.PolicySaver(policy)
    saver.register_concrete_function("add", tf.function(lambda x: x + 1))


FEATURES = {
    "xla_call_module": lambda: internals.xla_call_module([]),
    "_unbatch": ragged,
    "StructuredValue": lambda: tensor_spec.to_proto(tf.TensorSpec([])),
    "_list_all_concrete_functions": concrete_functions,
    "_create_slots": lambda: optimizers.OptimizerAdapter(
        tf.compat.v1.train.AdamOptimizer(), [tf.Variable(1.0)]
    ),
    "_get_obs": lambda: internals.last_picture(object()),
}


@pytest.mark.parametrize("name", list(FEATURES))
def test_a_feature_says_what_is_missing(name, take_away):
    take_away(name)
    with pytest.raises(internals.MissingNameError, match=error(name)):
        FEATURES[name]()


def test_the_releases_are_those_of_the_project():
    project = (pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text()
    tensorflow, keras_range = internals.SUPPORTED.split(" and ")
    assert f'"{tensorflow}"' in project
    assert f'"{keras_range}"' in project
