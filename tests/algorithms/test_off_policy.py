"""Settings of algorithms that learn from replay: an LSTM in actor and critics."""

import numpy as np
import pytest
import tensorflow as tf

import tfrl

SMALL = {
    "seed": 3,
    "lstm_size": 4,
    "lstm_sequence_length": 6,
    "batch_size": 8,
    "initial_collect_steps": 20,
    "replay_capacity": 500,
    "jit_compile": False,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [tfrl.SAC, tfrl.TD3])
def test_an_lstm_learns_from_sequences(kind):
    made = kind("PendulumNoVel-v1", **SMALL)
    assert made.trained_sequence_length() == 7  # The last step leads to a frame, too.
    assert made.loop.run(3).train_steps == 3
    frames = made.loop.draw_for_log()
    assert frames.reward.shape == (8, 7)
    state = made.agent.policy.get_initial_state(2)
    assert {part.shape[-1] for part in tf.nest.flatten(state)} == {4}


@pytest.fixture(scope="module")
def untrained():
    made = tfrl.SAC("PendulumNoVel-v1", **SMALL)
    made.build()
    return made


def test_the_seeds_of_an_lstm_are_no_weights_of_its_target(untrained):
    weights = untrained.agent.weights_by_name()
    norms = [tf.linalg.global_norm(weights[x]) for x in ("weights", "target_weights")]
    np.testing.assert_array_equal(*norms)  # Targets begin as copies.


def test_an_lstm_remembers(untrained):
    observation = np.array([1.0, 0.0], np.float32)
    first, state = untrained.predict(observation)
    second, _ = untrained.predict(observation, state)
    again, _ = untrained.predict(observation)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (tfrl.SAC, "num_critics", 3),
        (tfrl.SAC, "encoder", "simba"),
        (tfrl.SAC, "gsde_sample_freq", 4),
        (tfrl.TD3, "n_step_update", 2),
    ],
)
def test_settings_without_an_lstm_are_refused_with_one(kind, name, value):
    with pytest.raises(ValueError, match=rf"{name}: expected .* with an LSTM .*, got"):
        kind("Pendulum-v1", **SMALL, **{name: value})


@pytest.mark.parametrize("kind", [tfrl.REDQ, tfrl.TQC, tfrl.CrossQ, tfrl.DroQ])
def test_ensembles_have_no_lstm(kind):
    with pytest.raises(TypeError, match="unknown setting 'lstm_size'"):
        kind("Pendulum-v1", lstm_size=4)
