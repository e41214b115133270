"""Each check of `NetworkConformance` finds the fault it is for."""

import keras
import pytest
import tensorflow as tf

from tfrl import testing
from tfrl.networks import network

SPEC = tf.TensorSpec([3], tf.float32, "observation")


class Good(network.Network):
    """Two dense layers, and the last output as a state."""

    def __init__(self, input_tensor_spec=SPEC, units=2, name="Good"):
        super().__init__(
            input_tensor_spec, state_spec=tf.TensorSpec([units], tf.float32), name=name
        )
        self.hidden = keras.layers.Dense(4)
        self.last = keras.layers.Dense(units)

    def call(self, observation, network_state=(), training=False):
        output = self.last(self.hidden(observation)) + 0.1 * network_state
        return output, output


class LosesTheBatch(Good):
    def call(self, observation, network_state=(), training=False):
        output, state = super().call(observation, network_state)
        return tf.reduce_sum(output, axis=0), state


class MixesRows(Good):
    def call(self, observation, network_state=(), training=False):
        output, state = super().call(observation, network_state)
        return output - tf.reduce_mean(output, axis=0), state


class IsRandom(Good):
    def call(self, observation, network_state=(), training=False):
        output, state = super().call(observation, network_state)
        return output + tf.random.normal([1, 2]), state


class HasALayerToSpare(Good):
    def build(self, shapes):
        super().build(shapes)
        self.spare = self.add_weight(shape=[2], name="spare")


SHARED = keras.layers.Dense(4)


class SharesALayer(Good):
    def __init__(self, input_tensor_spec=SPEC, name="SharesALayer"):
        super().__init__(input_tensor_spec, name=name)
        self.hidden = SHARED


class CopiesToAnotherShape(Good):
    sizes = iter(range(2, 1_000))

    def __init__(self, input_tensor_spec=SPEC, name="Another"):
        super().__init__(input_tensor_spec, units=next(self.sizes), name=name)


class HidesAWeight(Good):
    def build(self, shapes):
        super().build(shapes)
        object.__setattr__(self, "hidden_weight", [tf.random.normal([2])])

    def call(self, observation, network_state=(), training=False):
        output, state = super().call(observation, network_state)
        return output + self.hidden_weight[0], state


class ChangesTheBatch(testing.NetworkConformance):
    """A fault of the suite, not of the network: its inputs change their shape."""

    def make_network(self):
        return Good()

    def make_inputs(self, network, batch_size, seed=0):
        return super().make_inputs(network, batch_size + seed // 2, seed)


class TakesAnything(Good):
    def __init__(self, input_tensor_spec=SPEC, name="TakesAnything"):
        super().__init__(input_tensor_spec, name=name)

    def __call__(self, inputs, *args, **kwargs):
        inputs = tf.nest.flatten(inputs)[0]
        return super().__call__(inputs, *args, **kwargs)


class AnotherSpecEachTime(Good):
    def create_variables(self, input_tensor_spec=None, **kwargs):
        super().create_variables(input_tensor_spec, **kwargs)
        return object()


FAULTS = [
    (AnotherSpecEachTime, "test_create_variables_returns_the_output_spec", "same spec"),
    (LosesTheBatch, "test_outputs_and_states_are_batched", "keep the batch in front"),
    (MixesRows, "test_rows_do_not_depend_on_each_other", "row 0 of a batch of 7"),
    (IsRandom, "test_it_is_the_same_at_every_call", "second call"),
    (HasALayerToSpare, "test_gradients_reach_all_trainable_variables", "spare"),
    (SharesALayer, "test_a_copy_has_weights_of_its_own", "shared with the original"),
    (CopiesToAnotherShape, "test_a_copy_has_weights_of_its_own", "decides the layers"),
    (HidesAWeight, "test_a_checkpoint_holds_it", "after restoring"),
    (TakesAnything, "test_inputs_of_another_structure_are_refused", "no error"),
]


def suite_of(make):
    class Suite(testing.NetworkConformance):
        def make_network(self):
            return make()

    return Suite()


def test_a_good_network_passes():
    suite_of(Good).run_all()


@pytest.mark.parametrize(
    ("faulty", "check", "message"),
    FAULTS,
    ids=[f"{faulty.__name__}-{check}" for faulty, check, _ in FAULTS],
)
def test_a_fault_is_found(faulty, check, message):
    with pytest.raises(AssertionError, match=message):
        getattr(suite_of(faulty), check)()


def test_every_check_has_a_fault():
    covered = {check for _, check, _ in FAULTS} | {"test_it_traces_once"}
    assert covered == set(testing.NetworkConformance.checks())


def test_more_than_one_trace_is_found():
    with pytest.raises(AssertionError, match="2 traces"):
        ChangesTheBatch().test_it_traces_once()


def test_unused_variables_can_be_meant():
    suite = suite_of(HasALayerToSpare)
    suite.has_unused_variables = True
    suite.test_gradients_reach_all_trainable_variables()


def test_a_suite_without_a_network_says_what_to_write():
    with pytest.raises(NotImplementedError, match="make_network: not written"):
        testing.NetworkConformance().run_all()
