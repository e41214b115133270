import dm_env
import gymnasium
import numpy as np
import pytest
from dm_env import specs as dm_specs

from tfrl.environments import (
    dm_env_wrapper,
    py_to_dm_wrapper,
    test_envs,
    utils,
    wrappers,
)
from tfrl.specs import array_spec


class Walk(dm_env.Environment):
    """Walks along a line of float64; terminates at 2, truncates after 4 steps."""

    def __init__(self):
        self.actions = []
        self.place = np.zeros(1)
        self._num_steps = 0
        self._reset_next_step = True
        self.closed = False

    def reset(self):
        self._reset_next_step = False
        self._num_steps = 0
        self.place[:] = 0
        return dm_env.restart({"place": self.place})

    def step(self, action):
        if self._reset_next_step:
            return self.reset()
        self.actions.append(action)
        self._num_steps += 1
        self.place += 2 * action - 1
        reward = float(self.place[0])
        self._reset_next_step = reward >= 2 or self._num_steps >= 4
        if reward >= 2:
            return dm_env.termination(reward, {"place": self.place})
        if self._num_steps >= 4:
            return dm_env.truncation(reward, {"place": self.place}, 0.9)
        return dm_env.transition(reward, {"place": self.place}, 0.9)

    def observation_spec(self):
        return {"place": dm_specs.Array((1,), np.float64, "place")}

    def action_spec(self):
        return dm_specs.DiscreteArray(2, np.int64, "move")

    def close(self):
        self.closed = True


def play(environment, actions):
    steps = [environment.step(np.array(a)) for a in actions]
    return [
        (
            int(step.step_type),
            float(step.reward),
            round(float(step.discount), 3),
            float(step.observation["place"][0]),
        )
        for step in steps
    ]


def test_specs_are_converted():
    environment = dm_env_wrapper.DmEnvWrapper(Walk())
    assert environment.observation_spec()["place"] == array_spec.ArraySpec(
        (1,), np.float64
    )
    assert environment.action_spec() == array_spec.BoundedArraySpec((), np.int64, 0, 1)
    assert environment.action_spec().name == "move"
    assert environment.reward_spec() == array_spec.ArraySpec((), np.float32)
    assert environment.discount_spec() == array_spec.BoundedArraySpec(
        (), np.float32, 0, 1
    )


@pytest.mark.parametrize("handle_auto_reset", [True, False])
def test_a_termination_and_a_truncation(handle_auto_reset):
    environment = dm_env_wrapper.DmEnvWrapper(
        Walk(), handle_auto_reset=handle_auto_reset
    )
    assert play(environment, [0, 1, 1, 0, 1, 0, 1, 0, 1]) == [
        (0, 0, 1, 0),
        (1, 1, 0.9, 1),
        (2, 2, 0, 2),
        (0, 0, 1, 0),
        (1, 1, 0.9, 1),
        (1, 0, 0.9, 0),
        (1, 1, 0.9, 1),
        (2, 0, 0.9, 0),
        (0, 0, 1, 0),
    ]


def test_time_steps_follow_the_specs():
    utils.validate_py_environment(dm_env_wrapper.DmEnvWrapper(Walk()), 5)


def test_observations_are_copies():
    environment = dm_env_wrapper.DmEnvWrapper(Walk())
    first = environment.reset().observation["place"]
    environment.step(1)
    assert first == 0


def test_actions_come_as_hashable_scalars_of_the_specs_dtype():
    inner = Walk()
    environment = dm_env_wrapper.DmEnvWrapper(inner)
    environment.reset()
    environment.step(np.array(1, np.int32))
    assert inner.actions == [1]
    assert inner.actions[0].dtype == np.int64
    assert hash(inner.actions[0]) == hash(1)


def test_dtype_map_changes_specs_and_values():
    environment = dm_env_wrapper.DmEnvWrapper(Walk(), {np.float64: np.float32})
    assert environment.observation_spec()["place"].dtype == np.float32
    assert environment.reset().observation["place"].dtype == np.float32
    assert environment.action_spec().dtype == np.int64


def test_there_and_back_changes_nothing():
    there_and_back = dm_env_wrapper.DmEnvWrapper(
        py_to_dm_wrapper.PyToDMWrapper(test_envs.NestedCountingEnv(2))
    )
    plain = test_envs.NestedCountingEnv(2)
    assert there_and_back.time_step_spec() == plain.time_step_spec()
    assert there_and_back.action_spec() == plain.action_spec()
    for _ in range(6):
        assert there_and_back.step(0) == plain.step(0)


def test_state_seed_and_info_are_the_environments_own_where_it_has_them():
    inner = py_to_dm_wrapper.PyToDMWrapper(test_envs.CountingEnv(9))
    environment = dm_env_wrapper.DmEnvWrapper(inner)
    environment.reset()
    state = environment.get_state()
    environment.step(0)
    environment.set_state(state)
    assert environment.step(0).observation == 1
    assert environment.seed(3) == 3
    assert environment.get_info() == {}


def test_what_the_environment_has_not_is_not_implemented():
    environment = dm_env_wrapper.DmEnvWrapper(Walk())
    for call in (
        environment.get_state,
        environment.get_info,
        lambda: environment.seed(1),
        lambda: environment.set_state(None),
        environment.render,
    ):
        with pytest.raises(NotImplementedError, match="DmEnvWrapper"):
            call()


def test_other_attributes_and_close_reach_the_environment():
    inner = Walk()
    environment = wrappers.RunStats(dm_env_wrapper.DmEnvWrapper(inner))
    assert environment.dm_env is inner
    assert environment.place is inner.place
    environment.close()
    assert inner.closed


def test_a_missing_reward_is_an_error():
    class Unrewarded(Walk):
        def step(self, action):
            return super().step(action)._replace(reward=None)

    environment = dm_env_wrapper.DmEnvWrapper(Unrewarded())
    environment.reset()
    with pytest.raises(ValueError, match=r"^reward: got None, expected an array of"):
        environment.step(1)


def test_other_objects_than_dm_env_environments_are_an_error():
    with pytest.raises(TypeError, match=r"expected a dm_env\.Environment; .*suite_gym"):
        dm_env_wrapper.DmEnvWrapper(gymnasium.make("CartPole-v1"))
    with pytest.raises(TypeError, match="a PyEnvironment needs no wrapper"):
        dm_env_wrapper.DmEnvWrapper(test_envs.CountingEnv())
