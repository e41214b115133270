"""The optimizer adapter against the optimizers themselves, step by step."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.utils.optimization import optimizers

INITIAL = [np.array([[1.0, -2], [3, 0.5]]), np.array([0.1, -0.2])]


def keras_variables(**kwargs):
    return [
        keras.Variable(value, dtype="float32", name=name, **kwargs)
        for value, name in zip(INITIAL, ["kernel", "bias"], strict=True)
    ]


def tf_variables():
    return [tf.Variable(value, dtype=tf.float32) for value in INITIAL]


def gradients(step):
    rng = np.random.default_rng(step)
    return [
        tf.constant(rng.normal(size=v.shape) * 10.0 ** (step % 3 - 1), tf.float32)
        for v in INITIAL
    ]


def values(variables):
    return [tf.convert_to_tensor(v).numpy() for v in variables]


def assert_close(some, others, **kwargs):
    for a, b in zip(values(some), values(others), strict=True):
        np.testing.assert_allclose(a, b, **kwargs)


def decay():
    return keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)


# --- Adam through the fused kernel.


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.optimizers.Adam(0.1),
        lambda: keras.optimizers.Adam(0.05, beta_1=0.5, beta_2=0.9, epsilon=1e-3),
        lambda: keras.optimizers.Adam(decay()),
    ],
)
def test_fused_adam_is_keras_adam_step_by_step(make, graph):
    fused, plain = keras_variables(), keras_variables()
    adapter, reference = optimizers.OptimizerAdapter(make(), fused), make()
    assert adapter._apply == adapter._apply_fused_adam
    apply = tf.function(adapter.apply) if graph else adapter.apply
    for step in range(10):
        apply(gradients(step))
        reference.apply_gradients(zip(gradients(step), plain, strict=True))
        assert_close(fused, plain, rtol=1e-4, atol=1e-5)
    # The slots and the counter, too, so that either can go on with the other's.
    # TensorFlow's `1 - beta_2` is of float32, hence the tolerance.
    assert_close(adapter.variables(), reference.variables, rtol=2e-5, atol=1e-7)


def test_adam_by_hand():
    # The first step of Adam moves by the learning rate against the gradient's sign.
    variables = keras_variables()
    optimizers.OptimizerAdapter(keras.optimizers.Adam(0.1), variables).apply(
        [tf.constant([[1.0, -2], [3, -4]]), tf.constant([5.0, -6])]
    )
    assert_close(
        variables, [[[0.9, -1.9], [2.9, 0.6]], [0.0, -0.1]], rtol=1e-4, atol=1e-6
    )


def test_learning_rate_may_be_changed_between_steps():
    variables, reference = keras_variables(), keras_variables()
    adam, plain = keras.optimizers.Adam(0.1), keras.optimizers.Adam(0.1)
    apply = tf.function(optimizers.OptimizerAdapter(adam, variables).apply)
    for step in range(2):
        apply(gradients(step))
        plain.apply_gradients(zip(gradients(step), reference, strict=True))
        adam.learning_rate = plain.learning_rate = 0.01
    assert_close(variables, reference, rtol=1e-4, atol=1e-5)


def test_variables_of_tensorflow_are_trained_as_well_as_those_of_keras():
    fused, plain = tf_variables(), keras_variables()
    adapter = optimizers.OptimizerAdapter(keras.optimizers.Adam(0.1), fused)
    reference = keras.optimizers.Adam(0.1)
    for step in range(3):
        adapter.apply(gradients(step))
        reference.apply_gradients(zip(gradients(step), plain, strict=True))
    assert_close(fused, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.optimizers.Adam(0.1),
        lambda: keras.optimizers.SGD(0.1, momentum=0.9),
        lambda: tf.compat.v1.train.AdamOptimizer(0.1),
    ],
)
def test_both_kinds_of_variables_at_once(make):
    mixed = [keras_variables()[0], tf_variables()[1]]
    plain = keras_variables()
    adapter = optimizers.OptimizerAdapter(make(), mixed)
    reference = optimizers.OptimizerAdapter(make(), plain)
    for step in range(3):
        adapter.apply(gradients(step))
        reference.apply(gradients(step))
    assert_close(mixed, plain, rtol=1e-5, atol=1e-6)


FALLBACKS = {
    "clipnorm": lambda: keras.optimizers.Adam(0.1, clipnorm=0.5),
    "global_clipnorm": lambda: keras.optimizers.Adam(0.1, global_clipnorm=0.5),
    "clipvalue": lambda: keras.optimizers.Adam(0.1, clipvalue=0.5),
    "amsgrad": lambda: keras.optimizers.Adam(0.1, amsgrad=True),
    "weight_decay": lambda: keras.optimizers.Adam(0.1, weight_decay=0.1),
    "ema": lambda: keras.optimizers.Adam(
        0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2
    ),
    "accumulation": lambda: keras.optimizers.Adam(0.1, gradient_accumulation_steps=2),
    "adamw": lambda: keras.optimizers.AdamW(0.1),
    "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.1),
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_other_keras_optimizers_do_what_they_do_alone(name):
    variables, plain = keras_variables(), keras_variables()
    adapter = optimizers.OptimizerAdapter(FALLBACKS[name](), variables)
    assert adapter._apply == adapter._apply_keras
    reference = FALLBACKS[name]()
    for step in range(4):
        adapter.apply(gradients(step))
        reference.apply_gradients(zip(gradients(step), plain, strict=True))
        assert_close(variables, plain, rtol=1e-5, atol=1e-6)


def test_constraints_of_variables_hold():
    layer = keras.layers.Dense(
        2, kernel_constraint="non_neg", kernel_initializer="zeros"
    )
    layer.build([None, 2])
    adapter = optimizers.OptimizerAdapter(
        keras.optimizers.Adam(0.1), layer.trainable_variables
    )
    adapter.apply([tf.constant([[1.0, -1], [1, -1]]), tf.ones([2])])
    np.testing.assert_allclose(layer.kernel, [[0, 0.1], [0, 0.1]], rtol=1e-4)


# --- Gradients that are missing.


@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.optimizers.Adam(0.1),
        lambda: keras.optimizers.SGD(0.1),
        lambda: tf.compat.v1.train.GradientDescentOptimizer(0.1),
        lambda: tf.compat.v1.train.AdamOptimizer(0.1),
    ],
)
def test_variable_without_gradient_is_left_alone(make):
    variables = keras_variables()
    adapter = optimizers.OptimizerAdapter(make(), variables)
    adapter.apply([None, tf.ones([2])])
    np.testing.assert_array_equal(variables[0], INITIAL[0])
    assert_close(variables[1:], [[0.0, -0.3]], rtol=1e-4, atol=1e-6)
    adapter.apply([tf.ones([2, 2]), None])
    assert_close(variables[:1], [INITIAL[0] - 0.1], rtol=0.2)


def test_no_gradient_at_all():
    adapter = optimizers.OptimizerAdapter(keras.optimizers.Adam(0.1), keras_variables())
    with pytest.raises(
        ValueError,
        match=r"gradients: expected at least one that is not None for the variables "
        r"\['kernel', 'bias'\]; the loss does not depend on them",
    ):
        adapter.apply([None, None])


def test_one_gradient_for_each_variable():
    adapter = optimizers.OptimizerAdapter(keras.optimizers.Adam(0.1), keras_variables())
    with pytest.raises(ValueError, match="argument"):
        adapter.apply([tf.ones([2, 2])])


# --- Optimizers of TensorFlow 1.


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.compat.v1.train.AdamOptimizer(0.1),
        lambda: tf.compat.v1.train.RMSPropOptimizer(0.1, momentum=0.5),
        lambda: tf.compat.v1.train.GradientDescentOptimizer(0.1),
    ],
)
def test_v1_optimizer_does_what_it_does_alone(make, graph):
    variables, plain = keras_variables(), tf_variables()
    adapter, reference = optimizers.OptimizerAdapter(make(), variables), make()
    apply = tf.function(adapter.apply) if graph else adapter.apply
    for step in range(4):
        apply(gradients(step))
        reference.apply_gradients(zip(gradients(step), plain, strict=True))
    assert_close(variables, plain, rtol=1e-5, atol=1e-6)


# --- What is bound, cloned, refused.


def test_all_slots_exist_before_the_first_step():
    for make, num in (
        (lambda: keras.optimizers.Adam(0.1), 6),
        (lambda: keras.optimizers.SGD(0.1, momentum=0.9), 4),
        (lambda: tf.compat.v1.train.AdamOptimizer(0.1), 6),
    ):
        adapter = optimizers.OptimizerAdapter(make(), keras_variables())
        before = [id(v) for v in adapter.variables()]
        assert len(before) == num
        assert all(isinstance(v, tf.Variable) for v in adapter.variables())
        adapter.apply(gradients(0))
        assert [id(v) for v in adapter.variables()] == before


def test_optimizer_bound_to_other_variables_is_cloned():
    optimizer = keras.optimizers.Adam(decay(), beta_1=0.5)
    first, second = keras_variables(), keras_variables()
    adapters = [optimizers.OptimizerAdapter(optimizer, v) for v in (first, second)]
    assert adapters[0].optimizer is optimizer
    assert adapters[1].optimizer is not optimizer
    for adapter in adapters:
        for step in range(3):
            adapter.apply(gradients(step))
    assert_close(first, second, rtol=1e-6)
    assert not set(map(id, adapters[0].variables())) & set(
        map(id, adapters[1].variables())
    )


def test_clone_has_the_learning_rate_of_now():
    optimizer = keras.optimizers.Adam(0.1)
    optimizers.OptimizerAdapter(optimizer, keras_variables())
    optimizer.learning_rate = 0.01
    clone = optimizers.OptimizerAdapter(optimizer, keras_variables()).optimizer
    np.testing.assert_allclose(clone.learning_rate, 0.01, rtol=1e-6)


def test_optimizer_bound_to_the_same_variables_is_kept():
    optimizer, variables = keras.optimizers.Adam(0.1), keras_variables()
    optimizer.build(variables)
    assert optimizers.OptimizerAdapter(optimizer, variables).optimizer is optimizer


@pytest.mark.parametrize("optimizer", ["adam", keras.optimizers.Adam, 0.1])
def test_other_types_are_refused(optimizer):
    with pytest.raises(
        TypeError,
        match=r"optimizer: expected a Keras 3 optimizer \(keras.optimizers.Adam\(1e-3\)"
        r"\) or a tf.compat.v1.train optimizer, got (str|type|float)\.",
    ):
        optimizers.OptimizerAdapter(optimizer, keras_variables())


def test_there_has_to_be_something_to_train():
    with pytest.raises(ValueError, match="trainable_variables: expected at least one"):
        optimizers.OptimizerAdapter(keras.optimizers.Adam(0.1), [])


# --- Checkpoints.


@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.optimizers.Adam(decay()),
        lambda: keras.optimizers.SGD(0.1, momentum=0.9),
        lambda: tf.compat.v1.train.AdamOptimizer(0.1),
        lambda: tf.compat.v1.train.RMSPropOptimizer(0.1, momentum=0.5),
    ],
)
def test_slots_are_checkpointed(make, tmp_path):
    adapter = optimizers.OptimizerAdapter(make(), keras_variables())
    for step in range(3):
        adapter.apply(gradients(step))
    path = tf.train.Checkpoint(optimizer=adapter).save(str(tmp_path / "checkpoint"))
    restored = optimizers.OptimizerAdapter(make(), keras_variables())
    status = tf.train.Checkpoint(optimizer=restored).restore(path)
    status.assert_existing_objects_matched().assert_consumed()
    for a, b in zip(adapter.variables(), restored.variables(), strict=True):
        np.testing.assert_array_equal(a, b)
    for _ in range(2):
        adapter.apply(gradients(9))
        restored.apply(gradients(9))
    for a, b in zip(adapter._variables, restored._variables, strict=True):
        np.testing.assert_array_equal(a, b)


def test_slots_of_v1_do_not_depend_on_the_names_of_layers(tmp_path):
    def adapter(names):
        variables = [
            keras.Variable(np.full([2], i), dtype="float32", name=name)
            for i, name in enumerate(names)
        ]
        optimizer = tf.compat.v1.train.AdamOptimizer(0.1)
        return optimizers.OptimizerAdapter(optimizer, variables)

    saved, restored = adapter(["dense_9", "dense_10"]), adapter(["dense_1", "dense_2"])
    saved.apply([tf.constant([1.0, 2]), tf.constant([30.0, 40])])
    path = tf.train.Checkpoint(optimizer=saved).save(str(tmp_path / "checkpoint"))
    tf.train.Checkpoint(optimizer=restored).restore(path).assert_consumed()
    for a, b in zip(saved._variables, restored._variables, strict=True):
        np.testing.assert_array_equal(
            restored.optimizer.get_slot(b.value, "m"),
            saved.optimizer.get_slot(a.value, "m"),
        )


def test_slots_of_v1_for_variables_of_tensorflow_are_saved_once(tmp_path):
    def made():
        variable = tf.Variable([1.0, 2.0])
        return optimizers.OptimizerAdapter(
            tf.compat.v1.train.AdamOptimizer(0.1), [variable, *keras_variables()]
        )

    saved, restored = made(), made()
    saved.apply([tf.constant([3.0, 4.0]), *gradients(1)])
    # Programs may also save the optimizer that they gave an agent.
    checkpoint = tf.train.Checkpoint(agent=saved, optimizer=saved.optimizer)
    path = checkpoint.save(str(tmp_path / "checkpoint"))
    tf.train.Checkpoint(agent=restored).restore(path).assert_consumed()
    assert len(saved.variables()) == 2 * len(saved._variables) + 2
    for a, b in zip(saved.variables(), restored.variables(), strict=True):
        np.testing.assert_array_equal(a, b)


# --- Clipping.


def test_each_gradient_is_clipped_by_itself():
    clipped = optimizers.clip_gradient_norms(
        [tf.constant([3.0, 4.0]), None, tf.constant([0.3, 0.4]), tf.zeros([2])], 1.0
    )
    np.testing.assert_allclose(clipped[0], [0.6, 0.8], rtol=1e-6)
    assert clipped[1] is None
    np.testing.assert_allclose(clipped[2], [0.3, 0.4], rtol=1e-6)
    np.testing.assert_array_equal(clipped[3], [0, 0])


def test_no_norm_clips_nothing():
    gradient = tf.constant([30.0, 40.0])
    assert optimizers.clip_gradient_norms([gradient, None], None) == [gradient, None]


# --- The size of gradients.


def test_an_adapter_clips_what_it_reduces():
    variables = keras_variables()
    gradients = [tf.constant([3.0, 4.0]), tf.constant([12.0]), None]
    clipped = {
        "each": optimizers.each_to_norm(2.5),
        "all": optimizers.all_to_norm(6.5),
        "none": None,
    }
    reduced = {}
    for name, clip in clipped.items():
        adapter = optimizers.OptimizerAdapter(keras.optimizers.SGD(), variables, clip)
        loss, kept = adapter.reduced(tf.constant(7.0), gradients)
        assert float(loss) == 7.0
        assert kept.pop() is None
        reduced[name] = [gradient.numpy().tolist() for gradient in kept]
    # The norms are 5 and 12, and 13 together.
    assert reduced == {
        "each": [[1.5, 2.0], [2.5]],
        "all": [[1.5, 2.0], [6.0]],
        "none": [[3.0, 4.0], [12.0]],
    }
    assert optimizers.each_to_norm(None) is optimizers.all_to_norm(None) is None


def test_the_squares_of_all_gradients_are_summed_up():
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([5]))
    size = optimizers.half_squared_norm([tf.constant([3.0, 4.0]), None, slices])
    assert size == (9 + 16 + 1 + 4) / 2


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e30])
def test_a_gradient_without_a_finite_square_shows(number):
    gradients = [tf.constant([1.0]), tf.constant([[0.0, number]], tf.float32)]
    assert not np.isfinite(optimizers.half_squared_norm(gradients))


def test_gradients_of_other_precisions_are_summed_up_in_a_wider_one():
    half = [tf.constant([300.0], kind) for kind in (tf.float16, tf.bfloat16)]
    assert optimizers.half_squared_norm(half) == 300**2
    double = tf.constant([1e30], tf.float64)
    np.testing.assert_allclose(optimizers.half_squared_norm([double]), 5e59, rtol=1e-12)
    assert np.isfinite(optimizers.half_squared_norm([*half, double]))


def test_no_gradients_are_of_size_zero():
    assert optimizers.half_squared_norm([None]) == 0


def test_without_an_optimizer_nothing_can_be_updated():
    variable = tf.Variable([1.0])
    adapter = optimizers.OptimizerAdapter(None, [variable])
    assert adapter.variables() == []
    with pytest.raises(ValueError, match=r"optimizer: got None, expected one to upd"):
        adapter.apply([tf.constant([1.0])])
    assert variable.numpy() == [1.0]


@pytest.mark.parametrize(
    ("rate", "got"),
    [
        (-1e-3, "-0.001"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (
            keras.optimizers.schedules.PolynomialDecay(1e-3, 10, -1e-3),
            "-0.001 as end_learning_rate of the schedule PolynomialDecay",
        ),
    ],
)
def test_a_learning_rate_is_finite_and_not_negative(rate, got):
    with pytest.raises(
        ValueError,
        match=f"^learning_rate: expected a finite number of at .*, got {got}",
    ):
        optimizers.OptimizerAdapter(keras.optimizers.SGD(rate), [tf.Variable(1.0)])


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (
            keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)),
            "got a LossScaleOptimizer.*expected its inner optimizer.*mixed_bfloat16",
        ),
        (
            keras.optimizers.Adam(0.1, loss_scale_factor=1024.0, name="scaled"),
            "optimizer 'scaled': got loss_scale_factor=1024.0.*leave it out",
        ),
    ],
)
def test_optimizers_that_expect_a_scaled_loss_are_refused(optimizer, message):
    """Nothing scales the loss, so they would divide gradients by the scale alone."""
    with pytest.raises(ValueError, match=message):
        optimizers.OptimizerAdapter(optimizer, [tf.Variable(1.0)])


@pytest.mark.parametrize("rate", [0.0, lambda: 0.1])
def test_learning_rates_of_zero_and_callables_pass(rate):
    optimizers.OptimizerAdapter(keras.optimizers.SGD(rate), [tf.Variable(1.0)])
