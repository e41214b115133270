"""The calls of Acme's first release."""

import threading

import dm_env
import numpy as np
import pytest

from tests.acme.adders import episodes
from tfrl.acme.adders import EarlyAdder
from tfrl.acme.adders import reverb as adders

REWARDS = episodes.floats(1, 2, 3)


def leaves(items):
    return [[leaf.tolist() for leaf in item] for item in items]


class Counting(dm_env.Environment):
    """Observes the number of steps; ends after three."""

    def reset(self):
        self._steps = 0
        return dm_env.restart(np.float32(0))

    def step(self, action):
        self._steps += 1
        reward, observation = np.float32(action), np.float32(self._steps)
        if self._steps == 3:
            return dm_env.TimeStep(
                dm_env.StepType.LAST, reward, np.float32(0), observation
            )
        return dm_env.transition(reward, observation, np.float32(1))

    def observation_spec(self):
        raise NotImplementedError

    action_spec = observation_spec


@pytest.mark.parametrize("is_async", [False, True])
def test_the_pages_loop_writes_what_the_present_calls_write(client, drain, is_async):
    environment = Counting()
    inner = adders.NStepTransitionAdder(client, n_step=2, discount=0.5)
    expected = None
    adder = EarlyAdder(inner)
    for _ in range(2):
        timestep = environment.reset()
        while not timestep.last():
            action = np.int32(timestep.observation + 10)
            new_timestep = environment.step(action)
            step = (
                timestep.observation,
                action,
                new_timestep.reward,
                new_timestep.discount,
                {"count": timestep.observation},
            )
            adder.add_async(*step) if is_async else adder.add(*step)
            timestep = new_timestep
        if is_async:
            adder.end_episode_async(new_timestep.observation).result()
        else:
            adder.end_episode(new_timestep.observation)
        items = leaves(drain())
        expected = expected or items
        assert items == expected

    episodes.add_episode(
        inner,
        episodes.time_steps(episodes.floats(10, 11, 12)),
        extras=lambda t: {"count": np.float32(t)},
    )
    assert leaves(drain()) == expected


def test_the_last_discount_says_whether_the_end_was_a_truncation(client, drain):
    adder = EarlyAdder(adders.NStepTransitionAdder(client, 1, 0.5))
    for discount in (0, 1):
        adder.add(np.float32(5), np.int32(1), np.float32(2), np.float32(discount))
        adder.end_episode(np.float32(6))
    assert leaves(drain()) == [[5, 1, 2, 0, 6], [5, 1, 2, 1, 6]]


def test_asynchronous_calls_do_not_wait_for_the_server(client, drain):
    num_threads = threading.active_count()
    adder = EarlyAdder(
        adders.NStepTransitionAdder(
            client, 1, 0.5, priority_fns={"small": None}, max_in_flight_items=0
        )
    )
    observation = np.zeros(1, np.float32)
    futures = []
    for t in range(5):  # The table holds two items.
        observation[:] = t  # Arrays are copied.
        futures.append(
            adder.add_async(observation, np.int32(0), np.float32(1), np.float32(1))
        )
    futures.append(adder.end_episode_async(np.full(1, 5, np.float32)))
    assert not futures[-1].done()
    drawn = []
    while len(drawn) < 5:
        drawn += drain("small")
    adder.reset()  # Waits for the calls before.
    assert all(future.done() for future in futures)
    assert [item[0].item() for item in drawn] == [0, 1, 2, 3, 4]
    assert threading.active_count() < num_threads + 40


def test_the_error_of_an_asynchronous_call_is_raised_by_the_next_one(client, drain):
    adder = EarlyAdder(adders.NStepTransitionAdder(client, 1, 0.5))
    adder.add_async(np.float32(0), np.int32(0), np.float32(1), np.float32(1))
    adder.add_async(np.float64(1), np.int32(0), np.float32(1), np.float32(1))
    skipped = adder.add_async(np.float32(2), np.int32(0), np.float32(1), np.float32(1))
    with pytest.raises(ValueError, match="wrong dtype"):
        adder.add(np.float32(3), np.int32(0), np.float32(1), np.float32(1))
    assert "wrong dtype" in str(skipped.exception())
    adder.reset()
    adder.add(np.float32(5), np.int32(0), np.float32(1), np.float32(1))
    adder.end_episode(np.float32(6))
    assert leaves(drain())[-1] == [5, 0, 1, 1, 6]


def test_a_reset_drops_the_step_that_waits_for_its_next_observation(client, drain):
    adder = EarlyAdder(adders.NStepTransitionAdder(client, 1, 0.5))
    adder.add(np.float32(0), np.int32(0), np.float32(1), np.float32(1))
    adder.reset()
    with pytest.raises(ValueError, match="end of an episode without steps"):
        adder.end_episode(np.float32(1))
    assert not drain()
