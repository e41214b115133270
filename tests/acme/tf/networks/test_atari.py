"""The networks for Atari, on small frames, with and without time."""

import collections

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.acme.tf.networks import atari

OAR = collections.namedtuple("OAR", ["observation", "action", "reward"])
SPEC = OAR(
    tf.TensorSpec([16, 16, 4], tf.uint8),
    tf.TensorSpec([], tf.int32),
    tf.TensorSpec([], tf.float32),
)


def inputs(*outer):
    rng = np.random.default_rng(0)
    return OAR(
        tf.constant(rng.integers(0, 256, [*outer, 16, 16, 4], np.uint8)),
        tf.constant(rng.integers(0, 6, outer, np.int32)),
        tf.constant(rng.normal(size=outer).astype(np.float32)),
    )


def test_dqn_network_on_frames_of_the_paper():
    network = atari.DQNAtariNetwork(6, tf.TensorSpec([84, 84, 4], tf.uint8), seed=0)
    assert network.create_variables() == tf.TensorSpec([6], tf.float32)
    # The torso, and two MLPs from 11 x 11 x 64 numbers by 512 units to 1 and 6.
    hidden = 11 * 11 * 64 * 512 + 512
    assert network.count_params() == 77_984 + 2 * hidden + 513 * 7


@pytest.fixture(scope="module", params=["r2d2", "impala"])
def recurrent(request):
    if request.param == "impala":
        return atari.IMPALAAtariNetwork(6, SPEC, seed=0)
    return atari.R2D2AtariNetwork(6, keras.layers.LSTMCell(8), SPEC, seed=0)


def test_a_sequence_is_its_steps_one_after_the_other(recurrent):
    sequence = inputs(2, 3)
    outputs, last_state = recurrent(
        sequence, network_state=recurrent.get_initial_state(2)
    )
    state = recurrent.get_initial_state(2)
    for t in range(3):
        step = tf.nest.map_structure(lambda leaf, t=t: leaf[:, t], sequence)
        output, state = recurrent(step, network_state=state)
        tf.nest.map_structure(
            lambda one, all_, t=t: np.testing.assert_allclose(
                one, all_[:, t], rtol=1e-4, atol=1e-5
            ),
            output,
            outputs,
        )
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
        state,
        last_state,
    )


def test_a_copy_has_weights_of_its_own(recurrent):
    recurrent.create_variables()
    copied = recurrent.copy()
    copied.create_variables()
    assert not {id(v) for v in copied.variables} & {id(v) for v in recurrent.variables}
    assert copied.state_spec == recurrent.state_spec


def test_deep_network_returns_logits_and_value():
    network = atari.DeepIMPALAAtariNetwork(6, SPEC, seed=0)
    logits, value = network.create_variables()
    assert logits.shape == [6]
    assert value.shape == []
    kernels = [v for v in network.variables if len(v.shape) == 4]
    assert len(kernels) == 15
