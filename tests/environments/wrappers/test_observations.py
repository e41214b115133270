import numpy as np
import pytest

from tfrl.environments import test_envs, wrappers
from tfrl.specs import array_spec

DTYPES = [np.uint8, np.int8, np.int32, np.int64, np.float16, np.float32, np.float64]


def vector_env(scripted, dtype=np.float32, **kwargs):
    """Observes `[n, n + 1, n + 2]` after `n` steps."""
    return scripted(
        observation_spec=array_spec.BoundedArraySpec(
            (3,), dtype, [0, 1, 2], [10, 11, 12], name="numbers"
        ),
        observe=lambda n: np.arange(n, n + 3, dtype=dtype),
        **kwargs,
    )


def nested_env(scripted, dtype=np.float32, **kwargs):
    """Observes a matrix of `n`, and the number `-n` inside a tuple."""
    return scripted(
        observation_spec={
            "matrix": array_spec.ArraySpec((2, 2), dtype),
            "again": (array_spec.ArraySpec((), dtype),),
        },
        observe=lambda n: {
            "matrix": np.full((2, 2), n, dtype),
            "again": (np.array(n + 5, dtype),),
        },
        **kwargs,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_filter_keeps_elements_bounds_and_dtype(scripted, dtype):
    environment = wrappers.ObservationFilterWrapper(vector_env(scripted, dtype), [2, 0])
    spec = environment.observation_spec()
    assert (spec.shape, spec.dtype, spec.name) == ((2,), dtype, "numbers")
    assert (spec.minimum.tolist(), spec.maximum.tolist()) == ([2, 0], [12, 10])
    assert environment.reset().observation.tolist() == [2, 0]
    observation = environment.step(0).observation
    assert observation.tolist() == [3, 1]
    assert observation.dtype == dtype


def test_filter_leaves_the_whole_vector_to_critics(scripted):
    environment = wrappers.ObservationFilterWrapper(
        vector_env(scripted), [2, 0], for_critics=True
    )
    spec = environment.observation_spec()
    shapes = {name: part.shape for name, part in spec.items()}
    assert shapes == {"observation": (2,), "critic_observation": (3,)}
    assert spec["critic_observation"].minimum.tolist() == [0, 1, 2]
    environment.reset()
    observation = environment.step(0).observation
    assert observation["observation"].tolist() == [3, 1]
    assert observation["critic_observation"].tolist() == [1, 2, 3]


def test_filter_counts_negative_indices_from_the_end(scripted):
    environment = wrappers.ObservationFilterWrapper(vector_env(scripted), [-1])
    assert environment.reset().observation.tolist() == [2]


@pytest.mark.parametrize("size", [1, 7])
def test_filter_takes_a_batch(scripted, batch_of, size):
    members = [vector_env(scripted) for _ in range(size)]
    environment = wrappers.ObservationFilterWrapper(batch_of(*members), [1, 2])
    assert environment.reset().observation.tolist() == [[1, 2]] * size


@pytest.mark.parametrize("idx", [[3], [-4], [], 1, [0.0], [True, False, True]])
def test_filter_refuses_other_indices_than_a_vector(scripted, idx):
    with pytest.raises(
        ValueError, match=r"idx: got .* one or more indices from -3 to 2"
    ):
        wrappers.ObservationFilterWrapper(vector_env(scripted), idx)


def test_filter_refuses_nests_and_other_ranks(scripted):
    for environment in (scripted(), nested_env(scripted)):
        with pytest.raises(ValueError, match="expected a single vector to choose from"):
            wrappers.ObservationFilterWrapper(environment, [0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_flatten_joins_the_observations_in_the_order_of_the_nest(scripted, dtype):
    environment = wrappers.FlattenObservationsWrapper(nested_env(scripted, dtype))
    spec = environment.observation_spec()
    assert spec == array_spec.ArraySpec((5,), dtype)
    assert spec.name == "packed_observations"
    environment.reset()
    observation = environment.step(0).observation
    assert observation.tolist() == [6, 1, 1, 1, 1]
    assert observation.dtype == dtype


@pytest.mark.parametrize("size", [1, 7])
def test_flatten_takes_a_batch(scripted, batch_of, size):
    members = [nested_env(scripted) for _ in range(size)]
    environment = wrappers.FlattenObservationsWrapper(batch_of(*members))
    assert environment.reset().observation.tolist() == [[5, 0, 0, 0, 0]] * size


def test_flatten_takes_a_single_array(scripted):
    environment = wrappers.FlattenObservationsWrapper(scripted())
    assert environment.reset().observation.tolist() == [0]


def test_allowlist_keeps_some_keys_and_changes_nothing_inside(scripted):
    inner = nested_env(scripted)
    environment = wrappers.FlattenObservationsWrapper(inner, ["matrix"])
    assert environment.observation_spec().shape == (4,)
    assert environment.reset().observation.tolist() == [0, 0, 0, 0]
    assert set(inner.observation_spec()) == {"matrix", "again"}
    assert set(inner.current_time_step().observation) == {"matrix", "again"}


def test_allowlist_chooses_among_dtypes(scripted):
    spec = {
        "a": array_spec.ArraySpec((), np.int32),
        "b": array_spec.ArraySpec((), np.float32),
    }
    inner = scripted(observation_spec=spec)
    assert wrappers.FlattenObservationsWrapper(
        inner, ["a"]
    ).observation_spec() == array_spec.ArraySpec((1,), np.int32)
    with pytest.raises(ValueError, match="observations of dtypes float32, int32, expe"):
        wrappers.FlattenObservationsWrapper(inner)


def test_allowlist_is_checked(scripted):
    environment = test_envs.NestedCountingEnv()
    with pytest.raises(
        ValueError,
        match=r"got \['no', 'total_steps'\], expected one or more of the keys "
        r"\['current_steps', 'total_steps'\], and not \['no'\]",
    ):
        wrappers.FlattenObservationsWrapper(environment, ["no", "total_steps"])
    with pytest.raises(ValueError, match="expected one or more of the keys"):
        wrappers.FlattenObservationsWrapper(environment, [])
    with pytest.raises(ValueError, match="expected observations that are a dict"):
        wrappers.FlattenObservationsWrapper(scripted(), ["a"])


def test_flattening_leaves_wrong_dtypes_to_the_checks(scripted):
    inner = scripted(
        observation_spec={"a": array_spec.ArraySpec((2,), np.int32)},
        observe=lambda n: {"a": np.array([1.7, n])},
    )
    environment = wrappers.FlattenObservationsWrapper(inner)
    assert environment.reset().observation.tolist() == [1.7, 0.0]
    inner = scripted(
        observation_spec={"a": array_spec.ArraySpec((2,), np.int32)},
        observe=lambda n: {"a": [1, n]},
    )
    observation = wrappers.FlattenObservationsWrapper(inner).reset().observation
    assert (observation.dtype, observation.tolist()) == (np.int32, [1, 0])


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
