import numpy as np
import pytest

from tfrl.environments import test_envs, wrappers
from tfrl.specs import array_spec

DTYPES = [np.bool_, np.uint8, np.int8, np.int32, np.int64, np.float16, np.float64]


def observations(environment, actions):
    return [environment.step(np.asarray(a)).observation.tolist() for a in actions]


@pytest.mark.parametrize("handle_auto_reset", [True, False])
def test_history_is_zeros_and_then_the_last_observations(scripted, handle_auto_reset):
    inner = scripted(length=3, observe=lambda n: np.float32(n + 1))
    environment = wrappers.HistoryWrapper(inner, handle_auto_reset=handle_auto_reset)
    assert observations(environment, [0] * 6) == [
        [0, 0, 1],
        [0, 1, 2],
        [1, 2, 3],
        [2, 3, 4],
        [0, 0, 1],
        [0, 1, 2],
    ]


def test_the_first_observation_can_fill_the_history(scripted):
    inner = scripted(length=2, observe=lambda n: np.float32(n + 1))
    environment = wrappers.HistoryWrapper(inner, 3, tile_first_step_obs=True)
    assert observations(environment, [0] * 4) == [
        [1, 1, 1],
        [1, 1, 2],
        [1, 2, 3],
        [1, 1, 1],
    ]


def test_an_action_stands_beside_the_observation_it_led_to(scripted):
    environment = wrappers.HistoryWrapper(scripted(), 2, include_actions=True)
    spec = environment.observation_spec()
    assert spec["observation"] == array_spec.ArraySpec((2,), np.float32)
    assert (spec["action"].shape, spec["action"].dtype) == ((2,), np.int32)
    environment.reset()
    observation = environment.step(1).observation
    assert observation["observation"].tolist() == [0, 1]
    assert observation["action"].tolist() == [0, 1]
    observation = environment.step(0).observation
    assert observation["observation"].tolist() == [1, 2]
    assert observation["action"].tolist() == [1, 0]
    assert environment.reset().observation["action"].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_history_keeps_dtype_and_shape(scripted, dtype):
    inner = scripted(
        array_spec.BoundedArraySpec((2,), dtype, 0, 1),
        observation_spec=array_spec.ArraySpec((2, 1), dtype),
        observe=lambda n: np.full((2, 1), n, dtype),
    )
    environment = wrappers.HistoryWrapper(inner, 4, include_actions=True)
    environment.reset()
    observation = environment.step(np.ones(2, dtype)).observation
    for key, shape in (("observation", (4, 2, 1)), ("action", (4, 2))):
        assert environment.observation_spec()[key].shape == shape
        assert environment.observation_spec()[key].dtype == dtype
        assert (observation[key].shape, observation[key].dtype) == (shape, dtype)


def test_bounds_allow_the_zeros_that_are_filled_in(scripted):
    spec = array_spec.BoundedArraySpec((2,), np.float32, [1, -3], [2, -2])
    inner = scripted(array_spec.BoundedArraySpec((), np.int64, 3, 5), 3)
    inner._observation_spec = spec
    zeros = wrappers.HistoryWrapper(inner, 2, include_actions=True).observation_spec()
    assert zeros["observation"].minimum.tolist() == [0, -3]
    assert zeros["observation"].maximum.tolist() == [2, 0]
    assert (zeros["action"].minimum, zeros["action"].maximum) == (0, 5)
    tiled = wrappers.HistoryWrapper(inner, 2, tile_first_step_obs=True)
    assert tiled.observation_spec().minimum.tolist() == [1, -3]


def test_members_of_a_batch_begin_their_histories_apart(scripted, batch_of):
    members = [scripted(length=n, observe=lambda n: np.float32(n + 1)) for n in (1, 2)]
    environment = wrappers.HistoryWrapper(
        batch_of(*members), 2, include_actions=True, tile_first_step_obs=False
    )
    assert environment.observation_spec()["observation"].shape == (2,)
    # Member 0: FIRST LAST FIRST LAST; member 1: FIRST MID LAST FIRST.
    histories = [environment.step(np.ones(2, np.int32)).observation for _ in range(4)]
    assert [h["observation"].tolist() for h in histories] == [
        [[0, 1], [0, 1]],
        [[1, 2], [1, 2]],
        [[0, 1], [2, 3]],
        [[1, 2], [0, 1]],
    ]
    assert [h["action"].tolist() for h in histories] == [
        [[0, 0], [0, 0]],
        [[0, 1], [0, 1]],
        [[0, 0], [1, 1]],
        [[0, 1], [0, 0]],
    ]


def test_histories_of_a_nest(scripted):
    environment = wrappers.HistoryWrapper(
        test_envs.NestedCountingEnv(nested_action=True), 2, include_actions=True
    )
    environment.reset()
    observation = environment.step({"foo": 1, "bar": 0}).observation
    assert observation["observation"]["current_steps"].tolist() == [0, 1]
    assert observation["action"]["foo"].tolist() == [0, 1]
    assert observation["action"]["bar"].tolist() == [0, 0]


def test_a_history_of_one_adds_a_dimension(scripted):
    environment = wrappers.HistoryWrapper(scripted(), 1)
    assert observations(environment, [0, 0]) == [[0], [1]]


def test_history_continues_where_it_was_saved(scripted):
    def make():
        return wrappers.HistoryWrapper(scripted(length=9), 3)

    environment = make()
    observations(environment, [0] * 4)
    state = environment.get_state()
    assert observations(environment, [0]) == [[2, 3, 4]]
    resumed = make()
    resumed.set_state(state)
    assert observations(resumed, [0]) == [[2, 3, 4]]


def test_history_checks_its_length_and_the_actions(scripted):
    with pytest.raises(ValueError, match=r"history_length: .* got 0"):
        wrappers.HistoryWrapper(scripted(), 0)
    with pytest.raises(TypeError, match=r"history_length: .* got 1.5 of type float"):
        wrappers.HistoryWrapper(scripted(), 1.5)
    environment = wrappers.HistoryWrapper(scripted())
    environment.reset()
    with pytest.raises(ValueError, match=r"action: got shape \(2,\), expected \(\)"):
        environment.step([0, 1])


def test_an_observation_of_a_wrong_dtype_is_left_to_the_checks(scripted):
    inner = scripted(
        observation_spec=array_spec.ArraySpec((), np.int32),
        observe=lambda n: np.float64(1.7),
    )
    environment = wrappers.HistoryWrapper(inner, 2)
    assert environment.reset().observation.tolist() == [0.0, 1.7]
