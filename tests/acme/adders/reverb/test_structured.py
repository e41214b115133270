"""Items that follow patterns."""

import numpy as np
import pytest

from tests.acme.adders import episodes
from tfrl import specs
from tfrl.acme.adders import reverb as adders
from tfrl.acme.adders.reverb import EndBehavior
from tfrl.acme.adders.reverb import structured as structured_adder
from tfrl.replay_service import structured

SCALAR = specs.ArraySpec((), np.float32)
ENVIRONMENT_SPEC = specs.EnvironmentSpec(
    observations={"x": SCALAR},
    actions=specs.BoundedArraySpec((), np.int32, 0, 99),
    rewards=SCALAR,
    discounts=SCALAR,
)
STEP_SPEC = adders.create_step_spec(ENVIRONMENT_SPEC, {"core": SCALAR})


def observation(t):
    return {"x": np.float32(t)}


def written(adder, drain, lengths, is_truncated=False):
    """Returns the leaves of the items of episodes with these numbers of actions."""
    for length in lengths:
        episodes.add_episode(
            adder,
            episodes.time_steps(
                episodes.floats(*range(1, length + 1)),
                observation,
                is_truncated=is_truncated,
            ),
            extras=lambda t: {"core": np.float32(t)},
        )
    return drain()


@pytest.mark.parametrize("behavior", [EndBehavior.WRITE, EndBehavior.TRUNCATE])
@pytest.mark.parametrize(("length", "period"), [(3, 3), (3, 2), (4, 1), (2, 5)])
def test_the_sequences_are_those_of_a_sequence_adder(
    client, drain, length, period, behavior
):
    configs = adders.create_sequence_config(
        STEP_SPEC, length, period, end_of_episode_behavior=behavior
    )
    adder = adders.StructuredAdder(client, 5, configs, STEP_SPEC)
    reference = adders.SequenceAdder(
        client, length, period, end_of_episode_behavior=behavior
    )
    lengths = (1, 2, 3, 4, 5, 6, 9)
    expected = written(reference, drain, lengths)
    items = written(adder, drain, lengths)
    assert len(items) == len(expected)
    for item, other in zip(items, expected, strict=True):
        for column, other_column in zip(item, other, strict=True):
            np.testing.assert_array_equal(column, other_column)


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("is_truncated", [False, True])
def test_the_transitions_are_those_of_a_transition_adder(
    client, drain, n_step, is_truncated
):
    configs = adders.create_n_step_transition_config(STEP_SPEC, n_step)
    adder = adders.StructuredAdder(client, 5, configs, STEP_SPEC)
    reference = adders.NStepTransitionAdder(client, n_step, 0.5)
    lengths = (1, 2, 3, 5)
    expected = written(reference, drain, lengths, is_truncated)
    items = written(adder, drain, lengths, is_truncated)
    assert len(items) == len(expected)
    for item, other in zip(items, expected, strict=True):
        observations, *rest = item
        transition = structured_adder.n_step_from_trajectory(
            trajectory=adders.Trajectory({"x": observations}, *rest),
            agent_discount=0.5,
        )
        flat = [transition.observation["x"], transition.action, transition.reward]
        flat += [transition.discount, transition.next_observation["x"]]
        flat += [transition.extras]
        for leaf, other_leaf in zip(flat, other, strict=True):
            assert leaf.dtype == other_leaf.dtype
            np.testing.assert_array_equal(leaf, other_leaf)


def test_vectors_of_rewards_and_discounts_count_element_by_element():
    shared = np.array([0.5, 0.5], np.float32)
    own = np.array([[0.5, 0.1], [0.5, 0.1]], np.float32)
    rewards = np.array([[1, 2], [1, 2]], np.float32)

    def result(reward, discount):
        rows = np.zeros([2, 1], np.float32)
        item = adders.Trajectory(rows, rows[:1], reward, discount, rows[:1], ())
        transition = adders.n_step_from_trajectory(item, 0.8)
        return transition.reward, transition.discount

    # r_0 + 0.8 d_0 r_1, and 0.8 d_0 d_1.
    both = result(rewards, own)
    np.testing.assert_allclose(both[0], [1.4, 2.16], rtol=1e-6)
    np.testing.assert_allclose(both[1], [0.2, 0.008], rtol=1e-6)
    np.testing.assert_allclose(result(rewards, shared)[0], [1.4, 2.8], rtol=1e-6)
    np.testing.assert_allclose(result(rewards[:, 0], own)[0], [1.4, 1.08], rtol=1e-6)
    nested = result({"a": rewards, "b": rewards[:, 0]}, shared)
    np.testing.assert_allclose(nested[0]["a"], [1.4, 2.8], rtol=1e-6)
    np.testing.assert_allclose(nested[0]["b"], 1.4, rtol=1e-6)
    np.testing.assert_allclose(nested[1]["b"], 0.2, rtol=1e-6)


def test_a_table_gets_the_signature_of_its_configs():
    configs = adders.create_n_step_transition_config(STEP_SPEC, 3)
    signature = structured.infer_signature(configs, STEP_SPEC)
    assert signature.observation["x"].shape == (2,)
    assert signature.reward.shape.as_list() == [None]
    assert signature.extras["core"].shape == (1,)


def test_a_pattern_can_leave_out_fields(client, drain):
    def without_extras(num_rows, reference):
        return {"x": reference.observation["x"][-num_rows:]}

    configs = adders.create_sequence_config(
        STEP_SPEC, 2, 2, table="second", sequence_pattern=without_extras
    )
    adder = adders.StructuredAdder(client, None, configs, STEP_SPEC)
    assert adder.configs == tuple(configs)
    assert not written(adder, drain, [3])
    assert [item[0].tolist() for item in drain("second")] == [[0, 1], [2, 3]]


def test_configs_that_do_not_fit_are_refused(client):
    one = adders.create_sequence_config(STEP_SPEC, 2, 2)
    other = adders.create_sequence_config(STEP_SPEC, 2, 2, table="second")
    flat = structured.create_config({"r": one[0].flat[0]}, "second")
    with pytest.raises(ValueError, match="the configs of table 'second' do not fit"):
        adders.StructuredAdder(client, 5, [*one, *other, flat], STEP_SPEC)
    with pytest.raises(ValueError, match="configs: got none"):
        adders.StructuredAdder(client, 5, [], STEP_SPEC)
    adder = adders.StructuredAdder(client, 5, one, STEP_SPEC)
    with pytest.raises(ValueError, match="pass it configs for this table"):
        adder.add_priority_table("second", None)
    with pytest.raises(ValueError, match="infer_signature"):
        adders.StructuredAdder.signature(ENVIRONMENT_SPEC)


@pytest.mark.parametrize("behavior", [EndBehavior.ZERO_PAD, EndBehavior.CONTINUE])
def test_sequences_beyond_an_episode_are_refused(behavior):
    with pytest.raises(NotImplementedError, match="use a SequenceAdder"):
        adders.create_sequence_config(STEP_SPEC, 2, 2, end_of_episode_behavior=behavior)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: adders.create_n_step_transition_config(STEP_SPEC, 0),
            r"step: .* got 0",
        ),
        (lambda: adders.create_sequence_config(STEP_SPEC, 0, 1), r"length: .* got 0"),
        (lambda: adders.create_sequence_config(STEP_SPEC, 2, 0), r"period: .* got 0"),
    ],
)
def test_numbers_below_one_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
