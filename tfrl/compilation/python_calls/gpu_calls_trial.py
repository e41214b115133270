"""A small program that calls Python as a training loop does, to try a device."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tfrl.compilation.python_calls import host_calls

_TIMES = 200


def run(device: str) -> str:
    """Returns "passed", or what is wrong.

    Args:
      device: The name of the device, such as "GPU:0".
    """
    channel = host_calls.CallChannel()
    seen: list[int] = []

    def step(i: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
        seen.append(int(i))
        if int(i) == 2 * _TIMES:
            raise ValueError("the exception of the trial")
        return [weights * np.float32(2.0), np.asarray(i) % 2 == 1]

    with tf.device(device):
        found = tf.zeros([]).device
        if not found.endswith(device):  # TensorFlow takes the CPU without a word.
            return f"device: got {found}, expected {device}"
        weights = tf.Variable([1.0, 2.0, 3.0])
        odd = tf.Variable(0, dtype=tf.int64)

        def turn(i: tf.Tensor) -> list[tf.Tensor]:
            specs = [tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.bool)]
            doubled, is_odd = host_calls.host_call(
                step, [i, weights.read_value()], specs, channel
            )
            weights.assign(doubled / 2.0 + 1.0)
            odd.assign_add(tf.cast(is_odd, tf.int64))
            return [i + 1]

        @tf.function(jit_compile=True, autograph=False)
        def loop(first: tf.Tensor) -> tf.Tensor:
            return tf.while_loop(lambda i: i < first + _TIMES, turn, [first])[0]

        with channel.raising():
            for call in range(2):
                loop(tf.constant(call * _TIMES, tf.int64))
        expected = np.array([1.0, 2.0, 3.0], np.float32) + 2 * _TIMES
        if not np.array_equal(weights.numpy(), expected):
            return f"weights: got {weights.numpy()}, expected {expected}"
        if (int(odd), seen) != (_TIMES, list(range(2 * _TIMES))):
            return f"calls: got {seen}, of these {int(odd)} odd"
        try:
            with channel.raising():
                loop(tf.constant(2 * _TIMES, tf.int64))
        except ValueError as error:
            return "passed" if "of the trial" in str(error) else repr(error)
    return "the exception was not raised"
