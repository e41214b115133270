import math

import pytest

from tfrl.acme.agents import agent as agent_lib


class Part:
    """An actor and a learner that record their calls."""

    def __init__(self):
        self.calls = []

    def select_action(self, observation):
        return ("action for", observation)

    def observe_first(self, timestep):
        self.calls.append(("first", timestep))

    def observe(self, action, next_timestep):
        self.calls.append((action, next_timestep))

    def update(self, wait=False):
        self.calls.append(("update", wait))

    def step(self):
        self.calls.append("step")

    def get_variables(self, names):
        return [[name] for name in names]


def steps_after_each(observations, min_observations, observations_per_step):
    learner = Part()
    agent = agent_lib.Agent(Part(), learner, min_observations, observations_per_step)
    counts = []
    for _ in range(observations):
        agent.observe(None, None)
        agent.update()
        counts.append(len(learner.calls))
    return counts


@pytest.mark.parametrize(
    ("observations_per_step", "counts"),
    [
        (2, [0, 0, 1, 1, 2, 2, 3]),
        (1, [0, 0, 1, 2, 3, 4, 5]),
        (0.5, [0, 0, 2, 4, 6, 8, 10]),
        # 1, 2, 3, 4 and 5 observations are 0.4, 0.8, 1.2, 1.6 and 2 times 2.5.
        (2.5, [0, 0, 1, 1, 2, 2, 2]),
        # They are 1.5 times 2/3, and so on: 1.5, 3, 4.5, 6 and 7.5.
        (2 / 3, [0, 0, 2, 3, 5, 6, 8]),
    ],
)
def test_the_learner_keeps_its_ratio_to_the_observations(observations_per_step, counts):
    assert steps_after_each(7, 3, observations_per_step) == counts


def test_the_actor_is_updated_after_the_learners_steps():
    calls = Part()
    agent = agent_lib.Agent(calls, calls, 1, 2)
    assert agent.select_action(3) == ("action for", 3)
    agent.observe_first("start")
    for step in range(3):
        agent.observe(step, f"after {step}")
        agent.update(wait=step == 2)
    assert calls.calls == [
        ("first", "start"),
        (0, "after 0"),
        "step",
        ("update", False),
        (1, "after 1"),
        (2, "after 2"),
        "step",
        ("update", True),
    ]
    assert agent.get_variables(["policy"]) == [["policy"]]
    assert agent.learner is calls


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0), "min_observations: expected an integer of at least 1"),
        ((1, 0.0), "observations_per_step: expected a finite number above 0"),
        ((1, math.inf), "observations_per_step: expected a finite number above 0"),
    ],
)
def test_numbers_out_of_range_are_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        agent_lib.Agent(Part(), Part(), *arguments)
