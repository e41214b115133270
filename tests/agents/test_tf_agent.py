"""The base class of agents: specs, checks, the counter, variables."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.policies import random_tf_policy
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import common
from tfrl.utils.optimization import optimizers

OBSERVATION = {"a": tf.TensorSpec([2], tf.float32)}
TIME_STEP = ts.time_step_spec(OBSERVATION)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)


class Counting(tf_agent.TFAgent):
    """Adds its experience to a weight."""

    def __init__(self, time_step_spec=TIME_STEP, result=None, **kwargs):
        policy = random_tf_policy.RandomTFPolicy(TIME_STEP, ACTION)
        super().__init__(
            time_step_spec,
            ACTION,
            policy,
            policy,
            train_sequence_length=kwargs.pop("train_sequence_length", 2),
            **kwargs,
        )
        self.weight = tf.Variable(0.0)
        self._result = result

    def _initialize(self):
        self.weight.assign(10.0)

    def _train(self, experience, weights=None, scale=1.0):
        self.weight.assign_add(scale * experience)
        self.train_step_counter.assign_add(1)
        return self._result or tf_agent.LossInfo(self.weight.read_value(), weights)

    def _loss(self, experience, weights=None, training=False):
        return self._result or tf_agent.LossInfo(experience, (weights, training))

    def _variables(self):
        return [self.weight]


def test_train_calls_the_subclass_with_all_arguments():
    agent = Counting()
    info = agent.train(2.0, weights="w", scale=3.0)
    assert isinstance(info, tf_agent.LossInfo)
    assert (info.loss.numpy(), info.extra) == (6.0, "w")
    assert agent.train_step_counter == 1


def test_loss_calls_the_subclass_and_is_not_training_by_default():
    assert Counting().loss(2.0) == tf_agent.LossInfo(2.0, (None, False))
    assert Counting().loss(2.0, weights=1.0, training=True).extra == (1.0, True)


def test_initialize_calls_the_subclass():
    agent = Counting()
    agent.initialize()
    assert agent.weight == 10.0


@pytest.mark.parametrize("method", ["train", "loss"])
def test_subclass_has_to_return_a_loss_info(method):
    agent = Counting(result=(1.0, 2.0))
    with pytest.raises(
        TypeError, match=r"Counting: expected its _train and _loss to return a LossInfo"
    ):
        getattr(agent, method)(1.0)


@pytest.mark.parametrize("method", ["train", "loss"])
def test_an_agent_without_parts_has_to_write_train_and_loss(method):
    policy = random_tf_policy.RandomTFPolicy(TIME_STEP, ACTION)
    agent = tf_agent.TFAgent(TIME_STEP, ACTION, policy, policy, 2)
    with pytest.raises(NotImplementedError, match="TFAgent: got no parts"):
        getattr(agent, method)(1.0)


class Regression(Counting):
    """Fits a layer to numbers by the part that the base class updates."""

    _train = tf_agent.TFAgent._train
    _variables = tf_agent.TFAgent._variables

    def __init__(self):
        super().__init__()
        self.layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
        self.layer.build([None, 1])
        self._set_only_part([self.layer], keras.optimizers.SGD(0.25))

    def _loss(self, experience, weights=None, training=False):
        error = self.layer(experience) - 3.0
        return tf_agent.LossInfo(tf.reduce_mean(error**2), (weights, training))


def test_the_only_part_minimises_the_loss_of_the_agent():
    agent, batch = Regression(), tf.constant([[1.0], [1.0]])
    assert agent.train(batch, tf.constant(2.0)) == (4.0, (2.0, True))
    # The slope is 2 (1 - 3), and the rate 0.25.
    np.testing.assert_allclose(agent.layer.kernel, [[2.0]])
    assert agent.loss(batch) == (1.0, (None, False))
    assert agent.train_step_counter == 1
    # The slope is now 2 (2 - 1).
    assert agent.diagnose(batch) == {"learning_rate": 0.25, "gradient_norm": 2.0}
    names = [v.name for v in agent.variables()]
    assert len(names) == 4  # The kernel, the optimizer's two, the counter.
    with pytest.raises(TypeError, match="seed: got 3 for a Regression"):
        agent.train(batch, seed=3)


def test_variables_include_the_counter():
    agent = Counting()
    assert [id(v) for v in agent.variables()] == [
        id(agent.weight),
        id(agent.train_step_counter),
    ]


def test_variables_are_a_property_that_may_be_called():
    agent = Counting()
    flat = tf.nest.flatten(agent.variables)
    assert [id(v) for v in flat] == [id(v) for v in agent.variables()]
    assert len(agent.variables) == 2


class Tracking(Counting):
    """Leaves it to the base class to list what it is made of."""

    _variables = tf_agent.TFAgent._variables

    def __init__(self):
        super().__init__()
        self.layers = {"value": [keras.layers.Dense(2)]}
        self.layers["value"][0].build([None, 3])
        self.optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
        self.optimizer.build(self.layers["value"][0].trainable_variables)


def test_variables_are_by_default_what_a_checkpoint_would_hold():
    agent = Tracking()
    kernel, bias = (v.value for v in agent.layers["value"][0].weights)
    listed = [id(v) for v in agent.variables()]
    assert {id(v) for v in (agent.weight, kernel, bias)} <= set(listed)
    assert {id(v.value) for v in agent.optimizer.variables} <= set(listed)
    assert listed.count(id(agent.train_step_counter)) == 1
    assert len(listed) == len(set(listed))


def test_counter_is_an_int64_variable_of_the_agents_own():
    first, second = Counting(), Counting()
    assert first.train_step_counter is not second.train_step_counter
    assert first.train_step_counter.dtype == tf.int64


@pytest.mark.parametrize("counter", [0, 1.0, tf.constant(0)])
def test_counter_has_to_be_a_variable(counter):
    with pytest.raises(
        TypeError, match=r"train_step_counter: expected an integer tf.V"
    ):
        Counting(train_step_counter=counter)


def test_counter_has_to_be_of_integers():
    with pytest.raises(TypeError, match="train_step_counter: expected an integer"):
        Counting(train_step_counter=tf.Variable(0.0))


def test_specs_are_plain_nests_of_tensor_specs():
    observation = {"a": array_spec.ArraySpec([2], np.float32)}
    agent = Counting(ts.time_step_spec(observation))
    assert agent.time_step_spec == TIME_STEP
    assert type(agent.time_step_spec) is ts.TimeStep
    assert type(agent.time_step_spec.observation) is dict
    assert agent.action_spec == ACTION
    assert agent.collect_data_spec.observation == OBSERVATION
    assert type(agent.collect_data_spec.observation) is dict
    assert agent.collect_data_spec == agent.collect_policy.trajectory_spec
    assert agent.training_data_spec == agent.collect_data_spec


def test_training_data_may_differ_from_collected_data():
    spec = Counting().collect_data_spec
    spec = spec._replace(observation={"b": tf.TensorSpec([5], tf.int64)})
    agent = Counting(training_data_spec=spec)
    assert agent.training_data_spec == spec
    assert agent.data_context.trajectory_spec == spec
    assert agent.data_context.time_step_spec.observation == spec.observation
    assert agent.collect_data_spec.observation == OBSERVATION
    assert agent.collect_data_context.trajectory_spec.observation == OBSERVATION


def test_policies_and_sequence_length_are_kept():
    agent = Counting(train_sequence_length=None)
    assert agent.train_sequence_length is None
    assert agent.post_process_policy() is agent.policy
    assert agent.preprocess_sequence("as it is") == "as it is"


def test_time_step_spec_has_to_be_a_time_step():
    with pytest.raises(
        TypeError, match="time_step_spec: expected a TimeStep of specs, got dict; pass"
    ):
        Counting(OBSERVATION)


@pytest.mark.parametrize("num_outer_dims", [0, 3])
def test_one_or_two_outer_dimensions(num_outer_dims):
    with pytest.raises(ValueError, match=r"num_outer_dims: expected 1 .* or 2"):
        Counting(num_outer_dims=num_outer_dims)


@pytest.mark.parametrize(
    ("enabled", "asked", "written"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_summaries_are_written_if_asked_for_and_enabled(enabled, asked, written):
    agent = Counting(
        enable_summaries=enabled, debug_summaries=asked, summarize_grads_and_vars=asked
    )
    assert agent.summaries_enabled == enabled
    assert agent.debug_summaries == written
    assert agent.summarize_grads_and_vars == written


def test_checkpoint_holds_what_the_agent_changes(tmp_path):
    agent = Counting()
    agent.train(5.0)
    path = tf.train.Checkpoint(agent=agent).save(str(tmp_path / "checkpoint"))
    restored = Counting()
    tf.train.Checkpoint(agent=restored).restore(path).assert_consumed()
    assert (restored.weight.numpy(), restored.train_step_counter.numpy()) == (5.0, 1)


class Strict(Counting):
    """Has TF-Agents' names of arguments, and takes them by name alone."""

    def _train(self, *, experience, weights):
        return super()._train(experience, weights)

    def _loss(self, *, experience, weights, training):
        return super()._loss(experience, weights, training)

    def _preprocess_sequence(self, experience):
        return experience + 1


def test_hooks_are_called_by_keyword():
    agent = Strict()
    assert agent.train(2.0, "w").extra == "w"
    assert agent.loss(2.0, 1.0, True).extra == (1.0, True)
    assert agent.preprocess_sequence(1) == 2


class TwoOptimizers(Counting):
    """Descends `x^2 / 2` in two weights, each with an optimizer of its own."""

    def __init__(self):
        super().__init__()
        self.weights = [tf.Variable(1.0), tf.Variable(10.0)]
        self.optimizers = [
            optimizers.OptimizerAdapter(keras.optimizers.SGD(rate), [weight])
            for rate, weight in zip((0.1, 0.5), self.weights, strict=True)
        ]

    def _train(self, experience, weights=None):
        losses = [experience * w**2 / 2 for w in self.weights]
        checked = [
            self._apply(loss, [weight.read_value()], [weight], optimizer)
            for loss, weight, optimizer in zip(
                losses, self.weights, self.optimizers, strict=True
            )
        ]
        self._count(*checked)
        return tf_agent.LossInfo(tf.add_n(checked), ())


@pytest.mark.parametrize("graph", [False, True])
def test_an_update_may_have_several_optimizers_and_counts_once(graph):
    agent = TwoOptimizers()
    train = tf.function(agent.train) if graph else agent.train
    assert train(tf.constant(1.0)).loss == 0.5 + 50
    np.testing.assert_allclose(agent.weights, [0.9, 5.0], rtol=1e-6)
    assert agent.train_step_counter == 1


@pytest.mark.parametrize("graph", [False, True])
def test_a_loss_that_is_not_finite_changes_nothing(graph):
    agent = TwoOptimizers()
    train = tf.function(agent.train) if graph else agent.train
    with pytest.raises(tf.errors.InvalidArgumentError, match="No weight was changed"):
        train(tf.constant(np.nan))
    np.testing.assert_array_equal(agent.weights, [1, 10])
    assert agent.train_step_counter == 0


class HugeGradients(TwoOptimizers):
    """Has finite losses, and gradients that are what the test says."""

    def _train(self, experience, weights=None):
        checked = self._apply(
            tf.constant(1.0), [experience], self.weights[:1], self.optimizers[0]
        )
        self._count(checked)
        return tf_agent.LossInfo(checked, ())


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("gradient", [np.nan, -np.inf, 1e30])
def test_a_gradient_that_is_not_finite_changes_nothing(graph, gradient):
    agent = HugeGradients()
    train = tf.function(agent.train) if graph else agent.train
    train(tf.constant(1.0))
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"HugeGradients loss is finite, but the sum of the squares of its "
        r"gradients is not[\s\S]*No weight was changed by this optimizer",
    ):
        train(tf.constant(gradient, tf.float32))
    np.testing.assert_allclose(agent.weights[0], 0.9, rtol=1e-6)
    assert agent.train_step_counter == 1


def test_a_method_that_nothing_calls_is_refused():
    with pytest.raises(TypeError, match=r"Mine._apply_loss: got an override that TFAg"):
        type("Mine", (Counting,), {"_apply_loss": lambda self: None})


def test_train_may_be_replaced_by_a_function_as_the_tutorials_do():
    agent = Counting()
    agent.train = common.function(agent.train)
    for number in (1.0, 2.0):
        agent.train(tf.constant(number))
    assert agent.weight == 3.0
    assert agent.train.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("loss", [np.nan, np.inf, -np.inf])
def test_what_depends_on_the_check_does_not_happen_at_a_bad_loss(graph, loss):
    variable = tf.Variable(0)

    def update(loss):
        with tf.control_dependencies([tf_agent.check_finite(loss, "X")]):
            variable.assign_add(1)

    update = tf.function(update) if graph else update
    update(tf.constant(1.0))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="the X loss is not finite, expected a num"
    ):
        update(tf.constant(loss, tf.float32))
    assert variable == 1
