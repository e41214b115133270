import numpy as np
import pytest

from tfrl.environments import wrappers


def play(environment, steps):
    """Returns `steps` time steps as (step type, reward, discount, observation)."""
    time_steps = [environment.step(np.int32(0)) for _ in range(steps)]
    return [
        (int(s.step_type), float(s.reward), float(s.discount), float(s.observation))
        for s in time_steps
    ]


def step_types(environment, steps):
    return [frame[0] for frame in play(environment, steps)]


@pytest.mark.parametrize("handle_auto_reset", [True, False])
def test_time_limit_truncates_with_the_discount_kept(scripted, handle_auto_reset):
    environment = wrappers.TimeLimit(scripted(length=9), 2, handle_auto_reset)
    assert play(environment, 5) == [
        (0, 0, 1, 0),
        (1, 1, 0.5, 1),
        (2, 2, 0.5, 2),
        (0, 0, 1, 0),
        (1, 1, 0.5, 1),
    ]
    assert environment.duration == 2


def test_termination_at_the_time_limit_stays_a_termination(scripted):
    environment = wrappers.TimeLimit(scripted(length=2), 2)
    assert play(environment, 3)[2] == (2, 2, 0, 2)


def test_time_limit_above_the_length_changes_nothing(scripted):
    environment = wrappers.TimeLimit(scripted(length=2), 5)
    assert step_types(environment, 7) == [0, 1, 2, 0, 1, 2, 0]


def test_a_reset_in_mid_episode_restarts_the_limit(scripted):
    environment = wrappers.TimeLimit(scripted(length=9), 2)
    step_types(environment, 2)
    environment.reset()
    assert step_types(environment, 2) == [1, 2]


@pytest.mark.parametrize("handle_auto_reset", [True, False])
def test_fixed_length_pads_a_terminated_episode(scripted, handle_auto_reset):
    environment = wrappers.FixedLength(scripted(length=2), 4, handle_auto_reset)
    assert play(environment, 6) == [
        (0, 0, 1, 0),
        (1, 1, 0.5, 1),
        (2, 2, 0, 2),
        (2, 0, 0, 2),
        (2, 0, 0, 2),
        (0, 0, 1, 0),
    ]


def test_fixed_length_pads_a_truncated_episode_after_its_own_last_step(scripted):
    environment = wrappers.FixedLength(scripted(length=1, truncates=True), 2)
    assert play(environment, 4) == [
        (0, 0, 1, 0),
        (2, 1, 0.5, 1),
        (2, 0, 0, 1),
        (0, 0, 1, 0),
    ]


def test_fixed_length_truncates_a_long_episode_with_the_discount_kept(scripted):
    environment = wrappers.FixedLength(scripted(length=9), 2)
    assert play(environment, 4) == [
        (0, 0, 1, 0),
        (1, 1, 0.5, 1),
        (2, 2, 0.5, 2),
        (0, 0, 1, 0),
    ]
    assert environment.fix_length == 2


def test_fixed_length_steps_the_environment_only_for_its_own_steps(scripted):
    inner = scripted(length=2)
    step_types(wrappers.FixedLength(inner, 5), 7)
    assert len(inner.actions) == 2


def test_fixed_length_continues_its_padding_when_restored(scripted):
    environment = wrappers.FixedLength(scripted(length=2), 4)
    step_types(environment, 4)
    resumed = wrappers.FixedLength(scripted(length=2), 4)
    resumed.set_state(environment.get_state())
    assert play(resumed, 2) == [(2, 0, 0, 2), (0, 0, 1, 0)]


def test_members_of_fixed_length_begin_together(scripted, batch_of):
    members = [wrappers.FixedLength(scripted(length=n), 3) for n in (1, 2, 5)]
    environment = batch_of(*members)
    types = [environment.step(np.zeros(3, np.int32)).step_type for _ in range(5)]
    assert np.transpose(types).tolist() == [
        [0, 2, 2, 2, 0],
        [0, 1, 2, 2, 0],
        [0, 1, 1, 2, 0],
    ]


@pytest.mark.parametrize("handle_auto_reset", [True, False])
def test_repeat_sums_rewards_and_multiplies_discounts(scripted, handle_auto_reset):
    inner = scripted(length=5)
    environment = wrappers.ActionRepeat(inner, 2, handle_auto_reset)
    assert play(environment, 5) == [
        (0, 0, 1, 0),
        (1, 1 + 2, 0.25, 2),
        (1, 3 + 4, 0.25, 4),
        (2, 5, 0, 5),
        (0, 0, 1, 0),
    ]
    assert len(inner.actions) == 5


def test_repeat_keeps_a_truncation(scripted):
    environment = wrappers.ActionRepeat(scripted(length=2, truncates=True), 3)
    assert play(environment, 2)[1] == (2, 1 + 2, 0.25, 2)


def test_repeat_keeps_arrays_of_the_specs_dtypes(scripted):
    environment = wrappers.ActionRepeat(scripted(), 2)
    environment.reset()
    time_step = environment.step(0)
    for value in (time_step.reward, time_step.discount):
        assert isinstance(value, np.ndarray)
        assert (value.shape, value.dtype) == ((), np.float32)


@pytest.mark.parametrize(
    ("wrapper", "name", "least"),
    [
        (wrappers.TimeLimit, "duration", 1),
        (wrappers.FixedLength, "fix_length", 1),
        (wrappers.ActionRepeat, "times", 2),
    ],
)
def test_lengths_of_time_are_checked(scripted, batch_of, wrapper, name, least):
    expected = f"{name}: expected an integer of at least {least}, got"
    with pytest.raises(ValueError, match=f"{expected} {least - 1}; "):
        wrapper(scripted(), least - 1)
    with pytest.raises(TypeError, match=f"{expected} 2.5 of type float; "):
        wrapper(scripted(), 2.5)
    with pytest.raises(
        ValueError,
        match=rf"env: got a batched environment \(batch_size 1\), expected a single "
        rf"one, .*wrap each member in {wrapper.__name__} before",
    ):
        wrapper(batch_of(scripted()), 3)


def test_action_repeat_adds_rewards_in_the_dtype_of_their_spec(scripted):
    rewards = [0, 0.5]
    inner = scripted(length=9, reward=lambda count, action: rewards[count - 1])
    environment = wrappers.ActionRepeat(inner, 2)
    environment.reset()
    reward = environment.step(0).reward
    assert (reward.dtype, float(reward)) == (np.float32, 0.5)
