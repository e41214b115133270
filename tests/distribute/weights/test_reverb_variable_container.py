"""Variables that go through a replay server."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import replay_service
from tfrl.distribute.weights import reverb_variable_container
from tfrl.experimental import distributed

POLICY, STEP = (
    reverb_variable_container.POLICY_KEY,
    reverb_variable_container.TRAIN_STEP_KEY,
)
SIGNATURE = {
    POLICY: (tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.float32)),
    STEP: tf.TensorSpec([], tf.int64),
}


def make_table(name, max_size=1, signature=SIGNATURE):
    return replay_service.Table(
        name,
        sampler=replay_service.selectors.Uniform(),
        remover=replay_service.selectors.Fifo(),
        rate_limiter=replay_service.rate_limiters.MinSize(1),
        max_size=max_size,
        signature=signature,
    )


def test_tf_agents_name_is_the_same_object():
    same = distributed.ReverbVariableContainer
    assert same is reverb_variable_container.ReverbVariableContainer


@pytest.fixture(scope="module")
def address():
    tables = [
        make_table("variables"),
        make_table("others", signature=tf.TensorSpec([3], tf.float32)),
        make_table("large", max_size=2),
        make_table("unsigned", signature=None),
    ]
    server = replay_service.Server(tables)
    yield f"localhost:{server.port}"
    server.stop()


@pytest.fixture(scope="module")
def container(address):
    return reverb_variable_container.ReverbVariableContainer(
        address, ["variables", "others"]
    )


def make_variables(a, b, step):
    return {
        POLICY: [keras.Variable(a), tf.Variable(b)],
        STEP: tf.Variable(step, dtype=tf.int64),
    }


def values(variables):
    return [np.asarray(v).tolist() for v in tf.nest.flatten(variables)]


def test_an_update_brings_the_values_that_were_pushed_last(container):
    source = make_variables([1.0, 2.0], 3.0, 10)
    target = make_variables([0.0, 0.0], 0.0, 0)
    container.push(source)
    source[STEP].assign(11)
    container.push(source)
    container.update(target)
    assert values(target) == [[1.0, 2.0], 3.0, 11]
    pulled = container.pull()
    assert isinstance(pulled[POLICY], tuple)
    assert values(pulled) == values(target)


def test_tables_are_separate(container):
    container.push(tf.constant([1.0, 2.0, 3.0]), "others")
    assert values(container.pull("others")) == [[1.0, 2.0, 3.0]]


def test_another_nest_or_dtype_is_refused(container):
    with pytest.raises((ValueError, TypeError), match="structure"):
        container.push({STEP: tf.constant(1, tf.int64)})
    wrong = make_variables([1.0, 2.0], 3.0, 10)
    wrong[STEP] = tf.constant(1.0)
    with pytest.raises(tf.errors.InvalidArgumentError):
        container.push(wrong)
    with pytest.raises((ValueError, TypeError), match="structure"):
        container.update([tf.Variable(0.0)])


def test_a_table_that_the_container_does_not_know_is_refused(container):
    for use in (container.pull, lambda t: container.push(1.0, t)):
        with pytest.raises(KeyError, match="table: got 'large'"):
            use("large")


@pytest.mark.parametrize(
    ("table", "error", "text"),
    [
        ("missing", KeyError, "table_names: got 'missing', but the server has"),
        ("large", ValueError, r"expected a max_size of 1, .* got 2"),
        ("unsigned", TypeError, "expected a signature"),
    ],
)
def test_a_table_that_cannot_hold_variables_is_refused(address, table, error, text):
    with pytest.raises(error, match=text):
        reverb_variable_container.ReverbVariableContainer(address, [table])
