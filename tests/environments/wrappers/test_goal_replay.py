import numpy as np
import pytest

from tfrl.environments import wrappers
from tfrl.specs import array_spec


class Reach(wrappers.GoalReplayEnvWrapper):
    """The goal is 10 above the start of the episode; observes place and goal."""

    def observation_spec(self):
        return {
            "place": self._env.observation_spec(),
            "goal": array_spec.ArraySpec((), np.float32),
        }

    def get_trajectory_with_goal(self, trajectory, goal):
        place = trajectory.observation
        if isinstance(place, dict):
            place = place["place"]
        return trajectory._replace(observation={"place": place, "goal": goal})

    def get_goal_from_trajectory(self, trajectory):
        return np.asarray(trajectory.observation, np.float32) + 10


def offsets(scripted, offset, length):
    return scripted(length=length, observe=lambda n: np.float32(n + offset))


@pytest.mark.parametrize("handle_auto_reset", [True, False])
def test_each_episode_has_the_goal_of_its_first_step(scripted, handle_auto_reset):
    places = iter([1, 2, 3, 50, 51])
    inner = scripted(length=2, observe=lambda _: np.float32(next(places)))
    environment = Reach(inner, handle_auto_reset)
    steps = [environment.step(0).observation for _ in range(5)]
    assert [float(step["place"]) for step in steps] == [1, 2, 3, 50, 51]
    assert [float(step["goal"]) for step in steps] == [11, 11, 11, 60, 60]


def test_members_of_a_batch_keep_their_goals_until_their_next_episode(
    scripted, batch_of
):
    numbers = iter(range(100))
    members = [
        scripted(length=n, observe=lambda _: np.float32(next(numbers))) for n in (1, 2)
    ]
    environment = Reach(batch_of(*members))
    goals = [
        environment.step(np.zeros(2, np.int32)).observation["goal"].tolist()
        for _ in range(4)
    ]
    # Places are (0, 1), (2, 3), (4, 5), (6, 7); member 0 begins again at 4, 1 at 7.
    assert goals == [[10, 11], [10, 11], [14, 11], [14, 17]]


def test_a_stored_step_is_relabeled_with_a_goal_that_was_reached(scripted):
    environment = Reach(scripted())
    early = environment.reset()
    reached = environment.step(0).observation["place"]
    relabeled = environment.get_trajectory_with_goal(early, reached)
    assert relabeled.observation == {"place": 0, "goal": 1}
    assert early.observation["goal"] == 10


def test_the_goal_is_part_of_the_state(scripted):
    environment = Reach(offsets(scripted, 5, 3))
    environment.reset()
    resumed = Reach(offsets(scripted, 7, 3))
    resumed.set_state(environment.get_state())
    assert resumed.step(0).observation["goal"] == 15


def test_goals_without_a_batch_dimension_are_an_error(scripted, batch_of):
    class OneGoal(Reach):
        def get_goal_from_trajectory(self, trajectory):
            return np.float32(3)

    environment = OneGoal(batch_of(scripted(length=1), scripted(length=2)))
    environment.reset()
    environment.step(np.zeros(2, np.int32))
    with pytest.raises(
        ValueError, match=r"goal: got shape \(\), expected \(2,\) in fr"
    ):
        environment.step(np.zeros(2, np.int32))


def test_it_is_abstract(scripted):
    with pytest.raises(TypeError, match="get_goal_from_trajectory"):
        wrappers.GoalReplayEnvWrapper(scripted())
