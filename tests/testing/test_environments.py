"""The small environments: what they document, and the conformance suites."""

import numpy as np
import pytest

from tfrl import testing
from tfrl.specs.array_spec import ArraySpec, BoundedArraySpec


class TestCounting(testing.PyEnvironmentConformance):
    def make_environment(self):
        return testing.CountingEnvironment()


class TestCountingNests(testing.PyEnvironmentConformance):
    def make_environment(self):
        return testing.CountingEnvironment(
            4,
            observation_spec={
                "a": ArraySpec((2,), np.float32),
                "b": (ArraySpec((), np.int64),),
            },
            action_spec=[BoundedArraySpec((), np.int32, 0, 9)],
            reward_spec={"cost": ArraySpec((2,), np.float32)},
            reward=lambda count, action: {"cost": np.array([count, action[0]])},
            discount=0.5,
            truncates=True,
        )


class TestCorridor(testing.PyEnvironmentConformance):
    def make_environment(self):
        return testing.CorridorEnvironment()


class TestRecall(testing.PyEnvironmentConformance):
    def make_environment(self):
        return testing.RecallEnvironment(delay=2)


def play(environment, actions):
    """Returns `(step_type, reward, discount)` of a reset and a step for each action."""
    steps = [environment.reset(), *(environment.step(action) for action in actions)]
    return [
        (int(s.step_type), round(float(s.reward), 4), float(s.discount)) for s in steps
    ]


def test_counting_rewards_a_step_with_its_number():
    environment = testing.CountingEnvironment(2)
    expected = [(0, 0, 1), (1, 1, 1), (2, 2, 0), (0, 0, 1), (1, 1, 1)]
    assert play(environment, [1, 0, 1, 1]) == expected
    assert environment.actions == [1, 0, 1]
    assert (environment.count, environment.num_steps) == (1, 3)
    assert environment.get_info() == {"count": 1}
    assert environment.render().tolist() == np.ones((2, 3, 3)).tolist()


def test_counting_truncates_and_rewards_as_asked():
    environment = testing.CountingEnvironment(
        2,
        reward=lambda count, action: 10 * count + action,
        discount=0.5,
        truncates=True,
    )
    assert play(environment, [3, 4]) == [(0, 0, 1), (1, 13, 0.5), (2, 24, 0.5)]


def test_counting_fills_its_observation_spec_unless_told_what_to_observe():
    spec = {"a": ArraySpec((2,), np.float32), "b": (ArraySpec((), np.uint8),)}
    environment = testing.CountingEnvironment(observation_spec=spec)
    environment.reset()
    observation = environment.step(0).observation
    assert observation["a"].tolist() == [1, 1]
    assert observation["b"][0].dtype == np.uint8
    other = testing.CountingEnvironment(observe=lambda count: np.int32(7 - count))
    assert [other.reset().observation, other.step(0).observation] == [7, 6]


def test_errors_are_raised_once_in_place_of_their_steps():
    environment = testing.CountingEnvironment(errors={2: KeyError("two")})
    environment.reset()
    environment.step(0)
    with pytest.raises(KeyError, match="two"):
        environment.step(0)
    assert environment.step(0).observation == 2
    environment.errors[3] = RuntimeError("three")
    with pytest.raises(RuntimeError, match="three"):
        environment.step(0)


def test_corridor_ends_at_its_right_end_only():
    environment = testing.CorridorEnvironment(2, step_reward=-0.5, goal_reward=3)
    steps = play(environment, [0, 1, 0, 1, 1])
    assert steps == [(0, 0, 1), *[(1, -0.5, 1)] * 4, (2, 3, 0)]
    assert environment.current_time_step().observation.tolist() == [2]


def test_recall_rewards_the_bit_on_show():
    environment = testing.RecallEnvironment(length=50)
    time_step, rewards = environment.reset(), []
    shown = []
    while not time_step.is_last():
        shown.append(int(np.argmax(time_step.observation)))
        time_step = environment.step(shown[-1])
        rewards.append(float(time_step.reward))
    assert rewards == [1] * 50
    assert 0 < sum(shown) < 50


def test_recall_rewards_the_bit_shown_earlier():
    environment = testing.RecallEnvironment(length=50, delay=2)
    shown = [environment.reset()]
    for _ in range(49):
        shown.append(environment.step(1))
    bits = [int(np.argmax(step.observation)) for step in shown]
    # The reward of step t answers bit t - 1, less the delay of 2.
    assert [float(step.reward) for step in shown[3:]] == bits[:-3]


def test_recall_repeats_itself_with_its_seed():
    def bits(environment):
        environment.reset()
        return [int(environment.step(0).observation[0]) for _ in range(20)]

    first = bits(testing.RecallEnvironment(30, seed=1))
    assert bits(testing.RecallEnvironment(30, seed=1)) == first
    assert bits(testing.RecallEnvironment(30, seed=2)) != first
    seeded = testing.RecallEnvironment(30, seed=2)
    seeded.seed(1)
    assert bits(seeded) == first


@pytest.mark.parametrize(
    "make",
    [
        testing.CountingEnvironment,
        testing.CorridorEnvironment,
        testing.RecallEnvironment,
    ],
)
def test_episodes_without_steps_are_refused(make):
    with pytest.raises(ValueError, match=r"length: expected .* at least 1, got 0"):
        make(0)


def test_a_negative_delay_is_refused():
    with pytest.raises(ValueError, match=r"delay: expected .* at least 0, got -1"):
        testing.RecallEnvironment(delay=-1)
