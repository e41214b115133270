"""BatchRenorm: the paper's equations in NumPy, and the numbers of sb3-contrib's."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.keras_layers import BatchRenorm, batch_renorm

# Made with sb3-contrib 2.9.2: BatchRenorm1d(2, eps=1e-8, momentum=0.2, warmup_steps=1)
# with scale (1.5, 0.5) and bias (0.25, -1), which trains on each batch and then
# evaluates the first. It divides by n - 1 where the paper divides by n, so each batch
# was given with its mean as one more row. It also has one more update of warm-up.
BATCHES = np.array(
    [
        [[2.13, -7.96], [2.64, -0.85], [1.46, 6.85]],
        [[3.3, 24.41], [1.3, -41.96], [1.38, -2.76]],
        [[-0.33, -10.56], [0.75, -25.97], [1.46, -13.49]],
        [[2.41, 27.28], [1.87, 36.99], [1.33, 6.55]],
    ]
)
TRAINED = [
    [[0.41556, -1.60408], [1.99873, -1.01626], [-1.66429, -0.37966]],
    [[2.37, -0.42775], [-0.8749, -1.64584], [-0.7451, -0.9264]],
    [[-1.47783, -1.3656], [0.28105, -1.98462], [1.43736, -1.4833]],
    [[3.12435, 0.37855], [2.21128, 0.79973], [1.29821, -0.52063]],
]
EVALUATED = [[2.42945, -1.38573], [3.36513, -1.08369], [1.20023, -0.75659]]
MEAN, VARIANCE = [0.94206, 1.12014], [0.6685, 138.5358]
WEIGHTS = np.array([[1.0, -2.0], [0.5, 3.0], [-1.5, 1.0]])


def make(**kwargs):
    layer = BatchRenorm(**{"momentum": 0.8, "epsilon": 1e-8, "warm_up": 2, **kwargs})
    layer.build((None, 2))
    layer.scale.assign([[1.5, 0.5]])
    layer.offset.assign([[0.25, -1.0]])
    return layer


def statistics(layer):
    return layer.moving_mean.numpy()[0], layer.moving_variance.numpy()[0]


def test_the_numbers_of_sb3_contrib():
    layer = make()
    train = tf.function(lambda x: layer(x, training=True))
    for batch, expected in zip(BATCHES, TRAINED, strict=True):
        outputs = train(tf.constant(batch, tf.float32))
        np.testing.assert_allclose(outputs, expected, atol=2e-5)
    outputs = layer(BATCHES[0].astype(np.float32))
    np.testing.assert_allclose(outputs, EVALUATED, atol=2e-5)
    mean, variance = statistics(layer)
    np.testing.assert_allclose(mean, MEAN, atol=2e-5)
    np.testing.assert_allclose(variance, VARIANCE, rtol=1e-4)


class ByHand:
    """Algorithm 1 of the paper with a running variance, in float64."""

    def __init__(self):
        self.mean, self.variance = np.zeros(2), np.ones(2)

    def corrections(self, x, r_max=3.0, d_max=5.0, epsilon=1e-3):
        running = np.sqrt(self.variance + epsilon)
        r = np.clip(np.sqrt(x.var(0) + epsilon) / running, 1 / r_max, r_max)
        return r, np.clip((x.mean(0) - self.mean) / running, -d_max, d_max)

    def outputs(self, x, r, d, epsilon=1e-3):
        normalized = (x - x.mean(0)) / np.sqrt(x.var(0) + epsilon) * r + d
        return [1.5, 0.5] * normalized + [0.25, -1.0]

    def update(self, x):
        self.mean += 0.2 * (x.mean(0) - self.mean)
        self.variance += 0.2 * (x.var(0) - self.variance)


def test_the_equations_of_the_paper_with_limits_that_bind():
    layer, by_hand, bound = make(epsilon=1e-3, warm_up=0), ByHand(), set()
    for batch in BATCHES:
        r, d = by_hand.corrections(batch)
        bound |= {*(r == 3), *(r == 1 / 3), *(np.abs(d) == 5)}
        outputs = layer(batch.astype(np.float32), training=True)
        np.testing.assert_allclose(outputs, by_hand.outputs(batch, r, d), rtol=1e-4)
        by_hand.update(batch)
        np.testing.assert_allclose(statistics(layer)[0], by_hand.mean, rtol=1e-4)
        np.testing.assert_allclose(statistics(layer)[1], by_hand.variance, rtol=1e-5)
    assert bound == {False, True}


def test_no_gradient_flows_into_the_corrections():
    layer, by_hand, x = make(epsilon=1e-3, warm_up=0), ByHand(), BATCHES[1]
    r, d = by_hand.corrections(x)
    inputs = tf.constant(x, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        loss = tf.reduce_sum(layer(inputs, training=True) * WEIGHTS)
    slopes = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-4
        ends = [(WEIGHTS * by_hand.outputs(x + h, r, d)).sum() for h in (step, -step)]
        slopes[place] = (ends[0] - ends[1]) / 2e-4
    gradient = tape.gradient(loss, inputs)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-3, atol=1e-3)


def test_each_of_stacked_layers_has_its_own_statistics():
    stacked, alone = BatchRenorm(warm_up=1), [BatchRenorm(warm_up=1) for _ in range(4)]
    for _ in range(3):
        outputs = stacked(BATCHES.astype(np.float32), training=True)
        expected = [
            layer(x.astype(np.float32), training=True)
            for layer, x in zip(alone, BATCHES, strict=True)
        ]
        np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5)
    assert stacked.moving_mean.shape == (4, 1, 2)


def test_examples_that_do_not_count_change_no_statistics():
    layer, expected = make(), make()
    some = np.concatenate([BATCHES[0], [[np.float64(1e3), -7.0]]]).astype(np.float32)
    with batch_renorm.counted(tf.constant([True, True, True, False])):
        outputs = layer(some, training=True)
    of_three = expected(some[:3], training=True)
    np.testing.assert_allclose(outputs[:3], of_three, rtol=1e-5)
    for one, other in zip(statistics(layer), statistics(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    before = statistics(layer)
    with batch_renorm.counted(tf.zeros([4], tf.bool)):
        assert np.all(np.isfinite(layer(some, training=True)))
    np.testing.assert_array_equal(before, statistics(layer))


def test_the_statistics_are_float32_in_mixed_precision():
    layer = make(dtype="mixed_bfloat16")
    outputs = layer(tf.constant(BATCHES[0], tf.bfloat16), training=True)
    assert outputs.dtype == tf.bfloat16
    np.testing.assert_allclose(
        statistics(layer)[0], 0.2 * BATCHES[0].mean(0), rtol=0.02
    )


def test_its_configuration_makes_the_same_layer():
    layer = make(r_max=2.0, d_max=4.0)
    assert (
        BatchRenorm.from_config(layer.get_config()).get_config() == layer.get_config()
    )


def test_images_are_refused():
    with pytest.raises(ValueError, match=r"expected \[B, n\]"):
        BatchRenorm()(tf.zeros([2, 3, 3, 1]))
