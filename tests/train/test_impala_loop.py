"""On-policy loops with IMPALA, whose collecting policy is some updates behind."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import train
from tfrl.agents import ImpalaAgent
from tfrl.environments import native
from tfrl.networks import (
    ActorDistributionNetwork,
    ActorDistributionRnnNetwork,
    ValueNetwork,
    ValueRnnNetwork,
)
from tfrl.utils import variables

BATCH_SIZE, NUM_STEPS, ITERATIONS, PERIOD = 4, 8, 5, 3


def make_networks(specs, recurrent):
    if recurrent:
        small = {"lstm_size": (4,), "input_fc_layer_params": None}
        return (
            ActorDistributionRnnNetwork(*specs, **small, seed=5),
            ValueRnnNetwork(specs[0], **small, seed=6),
        )
    small = {"fc_layer_params": (8,), "activation_fn": tf.tanh}
    return (
        ActorDistributionNetwork(*specs, **small, seed=5),
        ValueNetwork(specs[0], **small, seed=6),
    )


def make_loop(period=PERIOD, recurrent=False, **kwargs):
    environment = native.load("CartPole-v1", BATCH_SIZE, 5, max_episode_steps=20)
    specs = environment.observation_spec(), environment.action_spec()
    agent = ImpalaAgent(
        environment.time_step_spec(),
        specs[1],
        keras.optimizers.Adam(1e-2),
        *make_networks(specs, recurrent),
        gradient_clipping=0.5,
        collect_update_period=period,
        seed=5,
    )
    agent.initialize()
    return train.OnPolicyLoop(
        environment, agent, collect_steps_per_iteration=NUM_STEPS, seed=5, **kwargs
    )


def held(loop):
    parts = [*loop.agent.variables(), *variables.tracked_variables(loop.environment)]
    return [v.numpy() for v in variables.as_tf_variables(parts)]


@pytest.fixture(scope="module")
def plain():
    loop = make_loop()
    loop.info_then = loop.run(ITERATIONS)
    loop.held_then = held(loop)
    loop.drawn_then = loop.draw_for_log()
    loop.collecting_then = [v.numpy() for v in loop.agent.collect_policy.variables()]
    loop.trained_then = [v.numpy() for v in loop.agent.actor_net.variables]
    return loop


@pytest.fixture(scope="module")
def compiled():
    loop = make_loop(jit_compile=True)
    loop.info_then = loop.run(ITERATIONS)
    loop.held_then = held(loop)
    loop.drawn_then = loop.draw_for_log()
    return loop


@pytest.mark.slow
def test_a_compiled_loop_gives_the_numbers_of_a_plain_one(plain, compiled):
    np.testing.assert_allclose(plain.info_then.loss, compiled.info_then.loss, rtol=1e-4)
    assert plain.info_then.train_steps == ITERATIONS
    for mine, other in zip(plain.held_then, compiled.held_then, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_compiled_rollout_has_the_frames_of_a_plain_one(plain, compiled):
    """Its actions are 64-bit numbers `[4, 9]`; see `on_policy_loop._with_reached`."""
    assert plain.drawn_then.action.dtype == tf.int64
    for mine, other in zip(
        tf.nest.flatten(plain.drawn_then),
        tf.nest.flatten(compiled.drawn_then),
        strict=True,
    ):
        assert mine.shape[:2] == (BATCH_SIZE, NUM_STEPS + 1)
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_compiled_loop_gives_the_numbers_of_a_plain_one_with_recurrent_networks():
    loops = [make_loop(recurrent=True, jit_compile=value) for value in (False, True)]
    infos = [loop.run(ITERATIONS) for loop in loops]
    np.testing.assert_allclose(infos[0].loss, infos[1].loss, rtol=1e-4)
    for mine, other in zip(*map(held, loops), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)
    assert [loop.trace_count() for loop in loops] == [1, 1]


@pytest.mark.slow
def test_older_policies_have_collected(plain):
    collecting = plain.collecting_then[: len(plain.trained_then)]
    # The last of 5 updates that copied the weights is update 3.
    pairs = zip(plain.trained_then, collecting, strict=True)
    assert any(np.any(trained != old) for trained, old in pairs)
    numbers = plain.agent.diagnose(plain.drawn_then)
    assert {"entropy", "explained_variance"} <= {*numbers}


@pytest.mark.cpu
@pytest.mark.parametrize(
    "kind", ["plain", pytest.param("compiled", marks=pytest.mark.slow)]
)
def test_a_restored_loop_goes_on_bit_for_bit_with_one_trace(kind, request, tmp_path):
    loop = request.getfixturevalue(kind)
    path = tf.train.Checkpoint(**loop.checkpoint_items()).write(str(tmp_path / "c"))
    info = loop.run(4)
    expected = held(loop)
    tf.train.Checkpoint(**loop.checkpoint_items()).read(path)
    # In other calls.
    loop.run(1)
    assert loop.run(3)._replace(loss=0) == info._replace(loss=0)
    for mine, other in zip(held(loop), expected, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert loop.trace_count() == 1
