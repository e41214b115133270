"""The prioritized buffer against a dictionary of priorities."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tfrl.replay_buffers import TFPrioritizedReplayBuffer

LENGTH, ENVIRONMENTS = 4, 2
ALPHA, BETA, EPSILON, MOST = 0.5, 0.4, 0.01, 3.0
# It is traced once, and cleared by each example.
BUFFER = TFPrioritizedReplayBuffer(
    tf.TensorSpec([], tf.int64, "id"),
    ENVIRONMENTS,
    LENGTH,
    priority_exponent=ALPHA,
    importance_exponent=BETA,
    epsilon=EPSILON,
    max_weight=MOST,
)
PRIORITIES = st.sampled_from([0.0, 1e-9, 0.5, 1.0, 7.0, 1e6])
# Frames to add, or priorities for windows as shares of the keys that there have been.
UPDATES = st.lists(st.tuples(st.floats(0, 1), PRIORITIES), min_size=1, max_size=3)
ACTIONS = st.lists(st.integers(1, LENGTH) | UPDATES, max_size=5)


def refill(actions):
    """Returns the priorities raised to alpha that there should be, by key."""
    BUFFER.clear()
    held, largest, number = {}, 1.0, 0
    for action in [LENGTH - 1, *actions]:
        if isinstance(action, int):
            for _ in range(action * ENVIRONMENTS):
                held[number] = largest**ALPHA
                number += 1
            for i in range(action):
                frames = np.full(ENVIRONMENTS, number // ENVIRONMENTS - action + i)
                BUFFER.add_batch(frames)
            last = number - LENGTH * ENVIRONMENTS
            held = {key: x for key, x in held.items() if key >= last}
            continue
        keys = [min(int(share * number), number - 1) for share, _ in action]
        new = [priority for _, priority in action]
        BUFFER.update_priorities(keys, new)
        for key in {*keys} & {*held}:
            given = [x + EPSILON for k, x in zip(keys, new, strict=True) if k == key]
            held[key] = max(given) ** ALPHA
            largest = max(largest, *given)
    return held


@given(ACTIONS)
def test_priorities_are_those_that_were_given_last(actions):
    held = refill(actions)
    np.testing.assert_allclose(
        BUFFER.get_priorities([*held]), [*held.values()], rtol=1e-12
    )


@given(ACTIONS, st.integers(0, 2**31), st.sampled_from([1, 3]))
def test_windows_have_the_probabilities_and_weights_of_their_priorities(
    actions, seed, num_steps
):
    held = refill(actions)
    # A window of three frames begins at least two frames before the newest one.
    keys = [*held][: len(held) - ENVIRONMENTS * (num_steps - 1)]
    total = sum(held[key] for key in keys)
    items, info = BUFFER.sample(8, num_steps, seed=tf.constant([seed, 7]))
    drawn = info.keys.numpy()
    assert {*drawn} <= {*keys}
    np.testing.assert_array_equal(items[:, 0], drawn // ENVIRONMENTS)
    expected = np.array([held[key] / total for key in drawn])
    np.testing.assert_allclose(info.probabilities, expected, rtol=1e-5)
    weights = np.minimum((len(keys) * expected) ** -BETA, MOST)
    np.testing.assert_allclose(info.weights, weights, rtol=1e-5)
