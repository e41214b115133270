"""Variables as tensors."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import variable_substitution
from tfrl.utils.optimization import optimizers

F32 = np.float32


def traced(body, variables, values):
    """Runs `body` in a graph in which `values` stand for the variables.

    Returns what it returns, and what the variables would be.
    """

    @tf.function(autograph=False)
    def run(*tensors):
        with variable_substitution.substituted(variables, tensors) as substitute:
            outputs = body()
        return outputs, substitute.tensors()

    return run(*map(tf.constant, values))


def test_every_way_of_reading_gives_the_tensor():
    variable = tf.Variable([1.0, 2.0])
    keras_variable = keras.Variable(np.ones(2, F32))

    def read():
        return [
            variable + 0.0,
            variable.value(),
            variable.read_value(),
            tf.convert_to_tensor(variable),
            variable[::1],
            tf.gather(variable, [0, 1]),
            variable.sparse_read([0, 1]),
            variable.gather_nd([[0], [1]]),
            keras_variable * 1.0,
            keras.ops.add(keras_variable, 0.0),
            tf.gather(keras_variable.value, [0, 1]),
        ]

    outputs, _ = traced(read, [variable, keras_variable.value], [[7.0, 8.0]] * 2)
    for output in outputs:
        np.testing.assert_array_equal(output, [7.0, 8.0])
    np.testing.assert_array_equal(variable, [1.0, 2.0])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda v: v.assign([1.0, 2.0, 3.0]), [1, 2, 3]),
        (lambda v: v.assign_add([1.0, 2.0, 3.0]), [11, 22, 33]),
        (lambda v: v.assign_sub([1.0, 2.0, 3.0], read_value=False), [9, 18, 27]),
        (
            lambda v: v.scatter_update(tf.IndexedSlices([5.0, 6.0], [2, 0])),
            [6, 20, 5],
        ),
        (lambda v: v.scatter_nd_update([[1]], [4.0]), [10, 4, 30]),
        (
            lambda v: v.scatter_add(tf.IndexedSlices([1.0, 1.0, 2.0], [0, 0, 1])),
            [12, 22, 30],
        ),
    ],
)
def test_a_change_is_seen_by_later_reads_and_in_the_result(change, expected):
    variable = tf.Variable([0.0, 0.0, 0.0], trainable=False)

    def run():
        returned = change(variable)
        return variable.read_value(), returned

    (read, returned), (after,) = traced(run, [variable], [[10.0, 20.0, 30.0]])
    np.testing.assert_array_equal(read, expected)
    np.testing.assert_array_equal(after, expected)
    if returned is not None:
        np.testing.assert_array_equal(returned, expected)
    np.testing.assert_array_equal(variable, np.zeros(3))


def test_a_keras_variable_is_assigned_through_keras():
    keras_variable = keras.Variable(np.zeros(2, F32))

    def run():
        keras_variable.assign(keras_variable * 2.0)
        keras_variable.assign_add([1.0, 1.0])
        return ()

    _, (after,) = traced(run, [keras_variable.value], [[3.0, 4.0]])
    np.testing.assert_array_equal(after, [7.0, 9.0])
    np.testing.assert_array_equal(keras_variable, [0.0, 0.0])


def test_a_tape_differentiates_with_respect_to_the_variables():
    plain, of_keras = tf.Variable(1.0), keras.Variable(F32(1.0))

    def run():
        with tf.GradientTape() as tape:
            loss = plain**2 * of_keras
        return tape.gradient(loss, [plain, of_keras.value])

    gradients, _ = traced(run, [plain, of_keras.value], [3.0, 5.0])
    np.testing.assert_array_equal(gradients, [2 * 3.0 * 5.0, 9.0])


def test_a_tape_does_not_watch_what_is_not_trainable():
    variable = tf.Variable(1.0, trainable=False)

    def run():
        with tf.GradientTape() as tape:
            loss = variable**2
        assert tape.gradient(loss, variable) is None
        return loss

    loss, _ = traced(run, [variable], [3.0])
    assert loss == 9.0


def test_the_variables_are_themselves_again_even_after_an_exception():
    variable = tf.Variable(2.0)
    original = type(variable)

    def fail():
        assert type(variable) is not original
        assert isinstance(variable, tf.Variable)
        raise KeyError

    with pytest.raises(KeyError):
        traced(fail, [variable], [1.0])
    assert type(variable) is original
    assert variable_substitution.active() is None
    variable.assign_add(1.0)
    assert variable.numpy() == 3.0


def test_other_variables_are_not_touched():
    substituted, other = tf.Variable(0.0), tf.Variable(5.0)

    def run():
        other.assign_add(1.0)
        assert substituted in variable_substitution.active()
        assert other not in variable_substitution.active()
        return substituted + other

    total, _ = traced(run, [substituted], [1.0])
    assert total == 7.0
    assert other.numpy() == 6.0


def test_a_scope_within_a_scope_is_refused():
    variable, other = tf.Variable(0.0), tf.Variable(0.0)

    def run():
        with (
            pytest.raises(RuntimeError, match="expected one scope at a time"),
            variable_substitution.substituted([other], [tf.constant(5.0)]),
        ):
            pass
        return variable.assign_add(1.0) + other

    outputs, (after,) = traced(run, [variable], [1.0])
    assert (outputs, after) == (2.0, 2.0)


def test_an_assignment_in_an_inner_graph_is_refused():
    variable = tf.Variable(0.0, name="counter")

    def run():
        tf.cond(tf.constant(True), lambda: variable.assign(1.0), lambda: 0.0)

    with pytest.raises(
        NotImplementedError,
        match=r"counter.*inside of a tf.cond.*expected it outside.*substitution.cond",
    ):
        traced(run, [variable], [0.0])


def test_reading_in_an_inner_graph_works():
    variable = tf.Variable(0.0)

    def run():
        return tf.cond(variable > 1.0, lambda: variable * 2.0, lambda: 0.0)

    assert traced(run, [variable], [3.0])[0] == 6.0


@pytest.mark.parametrize(
    "method", ["scatter_max", "scatter_sub", "scatter_nd_add", "numpy"]
)
def test_what_is_not_supported_is_refused_by_name(method):
    variable = tf.Variable([0.0], name="weights")
    arguments = () if method == "numpy" else (None, None)
    with pytest.raises(
        NotImplementedError, match=rf"weights:0\.{method}.*expected reading, assign"
    ):
        traced(lambda: getattr(variable, method)(*arguments), [variable], [[1.0]])


def test_an_item_cannot_be_assigned():
    variable = tf.Variable([0.0, 1.0])
    with pytest.raises(NotImplementedError, match="_strided_slice_assign"):
        traced(lambda: variable[0].assign(2.0), [variable], [[1.0, 2.0]])


def test_a_value_of_another_shape_is_refused():
    variable = tf.Variable([0.0, 1.0])
    with pytest.raises(ValueError, match=r"not compatible|must be equal"):
        traced(lambda: variable.assign([1.0, 2.0, 3.0]), [variable], [[1.0, 2.0]])


@pytest.mark.parametrize("due", [True, False])
def test_cond_keeps_the_assignments_if_due(due):
    variable, other = tf.Variable(0.0), tf.Variable(0.0)

    def run():
        variable_substitution.cond(tf.constant(due), lambda: variable.assign_add(1.0))
        return other + 0.0

    _, after = traced(run, [variable, other], [5.0, 7.0])
    assert after == [6.0 if due else 5.0, 7.0]


@pytest.mark.parametrize("due", [True, False])
def test_cond_without_a_substitution_runs_the_body_if_due(due):
    variable = tf.Variable(0.0)
    run = tf.function(
        lambda: variable_substitution.cond(
            tf.constant(due), lambda: variable.assign_add(1.0)
        ),
        autograph=False,
    )
    run()
    assert variable.numpy() == float(due)


def test_another_variable_takes_assignments_in_inner_graphs_too():
    variable, other = tf.Variable(1.0), tf.Variable(10.0)

    @tf.function(autograph=False)
    def run():
        with variable_substitution.substituted([variable], [other]) as substitute:
            tf.while_loop(
                lambda i: i < 3,
                lambda i: (i + 1, variable.assign_add(tf.cast(i, tf.float32)))[:1],
                (0,),
            )
            for due in (True, False):
                variable_substitution.cond(
                    tf.constant(due), lambda: variable.assign(2 * variable)
                )
            return variable + 0.5, substitute.get(variable)

    assert [x.numpy() for x in run()] == [26.5, 26.0]
    assert (variable.numpy(), other.numpy()) == (1.0, 26.0)


# Optimizers update variables; under a substitution they update tensors.
START = np.array([[1.0, -2.0], [0.5, 3.0]], F32)
GRADIENTS = [np.array([[0.1, -3.0], [0.0, 20.0]], F32), np.full((2, 2), -0.2, F32)]
RATES = [1e-1, 1e-2, 1e-3]


def update_alone(make, rate):
    variable = tf.Variable(START)
    adapter = optimizers.OptimizerAdapter(make(rate), [variable])
    for gradient in GRADIENTS:
        adapter.apply([tf.constant(gradient)])
    return variable.numpy()


def update_together(make):
    """Two updates with each learning rate, all at once."""
    variable = tf.Variable(START)
    adapter = optimizers.OptimizerAdapter(make(0.5), [variable])
    held = [variable, *adapter.variables()]
    rate_index = next(
        i for i, v in enumerate(held) if v.shape.rank == 0 and v.numpy() == F32(0.5)
    )

    def one(values):
        with variable_substitution.substituted(held, values) as substitute:
            for gradient in GRADIENTS:
                adapter.apply([tf.constant(gradient)])
        return substitute.tensors()

    stacked = [np.stack([v.numpy()] * len(RATES)) for v in held]
    stacked[rate_index] = np.array(RATES, F32)
    together = tf.function(
        lambda values: tf.vectorized_map(one, values), autograph=False
    )
    after = together([tf.constant(values) for values in stacked])
    np.testing.assert_array_equal(variable, START)
    return after[0].numpy()


@pytest.mark.parametrize(
    "make",
    [
        keras.optimizers.Adam,
        lambda rate: keras.optimizers.Adam(rate, amsgrad=True, global_clipnorm=1.0),
        keras.optimizers.AdamW,
        lambda rate: keras.optimizers.SGD(rate, momentum=0.9),
        keras.optimizers.RMSprop,
    ],
    ids=["fused adam", "keras adam", "adamw", "sgd", "rmsprop"],
)
def test_an_optimizer_gives_each_copy_what_it_would_get_alone(make):
    for rate, copy in zip(RATES, update_together(make), strict=True):
        np.testing.assert_allclose(copy, update_alone(make, rate), rtol=1e-6)


def test_an_optimizer_of_tensorflow_1_is_refused():
    variable = tf.Variable(START)
    adapter = optimizers.OptimizerAdapter(
        tf.compat.v1.train.AdamOptimizer(1e-3), [variable]
    )
    with pytest.raises(
        NotImplementedError, match=r"got a tf.compat.v1 AdamOptimizer.*keras.optimizers"
    ):
        traced(lambda: adapter.apply([tf.constant(START)]), [variable], [START])
