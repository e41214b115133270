"""PyDriver, in environments whose episodes have a fixed length."""

import numpy as np
import pytest

from tfrl.drivers import PyDriver
from tfrl.environments import TFPyEnvironment, wrappers
from tfrl.environments.batched_py_environment import BatchedPyEnvironment
from tfrl.testing import CountingEnvironment
from tfrl.trajectories.policy_step import PolicyStep

FIRST, MID, LAST = 0, 1, 2


def batched_environment():
    """Two members, with episodes of 2 and of 3 steps."""
    members = [CountingEnvironment(2), CountingEnvironment(3)]
    return BatchedPyEnvironment(members, multithreading=False)


class CountingPolicy:
    """Acts with its state, which counts its actions."""

    def action(self, time_step, policy_state=()):
        state = policy_state if policy_state != () else 0
        action = np.full(np.shape(time_step.step_type), state, np.int32)
        return PolicyStep(action, state + 1, ())

    def get_initial_state(self, batch_size=None):
        return 100


def run(env, policy=None, policy_state=(), **kwargs):
    """Returns the trajectories observed, and what `run` returned."""
    seen = []
    driver = PyDriver(env, policy or CountingPolicy(), [seen.append], **kwargs)
    return seen, driver.run(env.reset(), policy_state)


def kinds(trajectories):
    return [(int(t.step_type), int(t.next_step_type)) for t in trajectories]


EPISODE = [(FIRST, MID), (MID, MID), (MID, LAST)]
BOUNDARY = [(LAST, FIRST)]


def test_boundaries_are_observed_but_not_counted_as_steps():
    seen, _ = run(CountingEnvironment(), max_steps=4)
    assert kinds(seen) == [*EPISODE, *BOUNDARY, (FIRST, MID)]


def test_an_episode_counts_at_its_boundary():
    seen, (time_step, _) = run(CountingEnvironment(), max_episodes=1)
    assert kinds(seen) == EPISODE + BOUNDARY
    assert time_step.is_first()


def test_an_episode_counts_at_its_last_step_if_told():
    seen, (time_step, _) = run(
        CountingEnvironment(), max_episodes=1, end_episode_on_boundary=False
    )
    assert kinds(seen) == EPISODE
    assert time_step.is_last()


def test_padding_ends_no_episode_and_takes_no_steps():
    env = wrappers.FixedLength(CountingEnvironment(length=1), 3)
    one = [(FIRST, LAST), (LAST, LAST), (LAST, LAST), (LAST, FIRST)]
    seen, _ = run(env, max_episodes=2)
    assert kinds(seen) == one + one
    seen, _ = run(env, max_episodes=2, end_episode_on_boundary=False)
    assert kinds(seen) == [*one, (FIRST, LAST)]
    seen, _ = run(env, max_steps=2)
    assert kinds(seen) == [*one, (FIRST, LAST)]


def test_the_first_limit_reached_ends_the_run():
    seen, _ = run(CountingEnvironment(), max_steps=2, max_episodes=1)
    assert len(seen) == 2


def test_a_run_continues_where_the_last_one_ended():
    env, seen = CountingEnvironment(), []
    driver = PyDriver(env, CountingPolicy(), [seen.append], max_steps=2)
    driver.run(*driver.run(env.reset()))
    assert kinds(seen) == [*EPISODE, *BOUNDARY, (FIRST, MID)]
    assert [int(t.action) for t in seen] == [0, 1, 2, 3, 100]


def test_trajectory_has_the_next_steps_reward():
    seen, _ = run(CountingEnvironment(), max_episodes=1)
    assert [float(t.reward) for t in seen] == [1, 2, 3, 0]
    assert [float(t.discount) for t in seen] == [1, 1, 0, 1]


def test_policy_state_starts_anew_with_each_episode_but_the_first():
    env = CountingEnvironment(length=2)
    run(env, policy_state=7, max_episodes=2)
    assert env.actions == [7, 8, 100, 101]


def test_transition_observers_get_the_state_before_the_action():
    seen = []
    run(
        CountingEnvironment(),
        policy_state=7,
        max_steps=2,
        transition_observers=[seen.append],
    )
    assert [step.state for _, step, _ in seen] == [7, 8]
    assert [int(now.observation) for now, _, _ in seen] == [0, 1]
    assert [int(later.observation) for _, _, later in seen] == [1, 2]


def test_info_observers_get_the_environments_info():
    infos = []
    run(CountingEnvironment(), max_steps=2, info_observers=[infos.append])
    assert infos == [{"count": 1}, {"count": 2}]


def test_batched_steps_are_summed_and_may_overshoot():
    seen, _ = run(batched_environment(), max_steps=3)
    assert [t.reward.shape for t in seen] == [(2,), (2,)]


def test_batched_boundary_of_one_member_does_not_count():
    # Member 0 is at its boundary in the third step: 2 + 2 + 1 steps.
    seen, _ = run(batched_environment(), max_steps=5)
    assert len(seen) == 3
    assert seen[2].is_boundary().tolist() == [True, False]


def test_batched_episodes_are_summed():
    seen, _ = run(batched_environment(), max_episodes=2)
    assert sum(np.sum(t.is_boundary()) for t in seen) == 2


@pytest.mark.parametrize("limits", [{}, {"max_steps": 0}, {"max_episodes": 0}])
def test_a_driver_without_limit_is_refused(limits):
    with pytest.raises(ValueError, match=r"max_steps, max_episodes: got .* never stop"):
        PyDriver(CountingEnvironment(), CountingPolicy(), [], **limits)


def test_a_tensorflow_environment_is_refused():
    environment = TFPyEnvironment(CountingEnvironment())
    with pytest.raises(TypeError, match=r"env: got TFPyEnvironment, .* but PyDriver"):
        PyDriver(environment, CountingPolicy(), [], max_steps=1)


def test_an_observer_that_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"observers\[1\]: got 3, .* a callable"):
        PyDriver(CountingEnvironment(), CountingPolicy(), [print, 3], max_steps=1)
    with pytest.raises(TypeError, match=r"observers: got one callable, .* in a list"):
        PyDriver(CountingEnvironment(), CountingPolicy(), print, max_steps=1)


def test_a_negative_limit_is_refused():
    with pytest.raises(ValueError, match="max_steps, max_episodes: got -1 and 2"):
        PyDriver(
            CountingEnvironment(2), CountingPolicy(), [], max_steps=-1, max_episodes=2
        )
