from unittest import mock

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from tfrl.environments import gym_wrapper, gymnasium_wrapper, py_environment, suite_gym
from tfrl.environments.gymnasium import vector_py_environment
from tfrl.specs import array_spec


class Nested(gymnasium.Env):
    """Nested spaces, and an action range that does not start at 0."""

    observation_space = spaces.Dict(
        position=spaces.Box(-1.0, 1.0, (2,), np.float32),
        rest=spaces.Tuple((spaces.Discrete(4), spaces.MultiBinary(3))),
    )
    action_space = spaces.Discrete(3, start=-1)
    render_mode = "rgb_array"

    def __init__(self, terminated=False, truncated=False):
        self.end = terminated, truncated
        self.actions = []
        self.shared = np.zeros(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.shared[:] = 0
        return self._observe(), {"seed": seed}

    def step(self, action):
        self.actions.append(action)
        self.shared += 0.25
        return self._observe(), 2, *self.end, {"steps": len(self.actions)}

    def render(self):
        return np.zeros((4, 6, 3), np.uint8)

    def get_state(self):
        return self.shared.copy()

    def set_state(self, state):
        self.shared[:] = state

    def _observe(self):
        return {"position": self.shared, "rest": (1, [0, 1, 1])}


def test_steps_equal_plain_gymnasium():
    ours = gymnasium_wrapper.GymnasiumWrapper(gymnasium.make("CartPole-v1"))
    theirs = gymnasium.make("CartPole-v1")
    ours.seed(3)
    observation, _ = theirs.reset(seed=3)
    np.testing.assert_array_equal(ours.reset().observation, observation)
    ended = False
    for i in range(200):
        time_step = ours.step(np.array(i % 2))
        if ended:
            observation, _ = theirs.reset()
            assert time_step.is_first()
            assert (time_step.reward, time_step.discount) == (0.0, 1.0)
            ended = False
        else:
            observation, reward, terminated, truncated, _ = theirs.step(i % 2)
            ended = terminated or truncated
            assert time_step.is_last() == ended
            assert time_step.reward == reward
            assert time_step.discount == (0.0 if terminated else 1.0)
        np.testing.assert_array_equal(time_step.observation, observation)


@pytest.mark.parametrize(
    ("terminated", "truncated", "step_type", "discount"),
    [
        (False, False, 1, 0.9),
        (True, False, 2, 0.0),
        (False, True, 2, 0.9),
        (True, True, 2, 0.0),
    ],
)
def test_terminated_and_truncated_map_to_step_type_and_discount(
    terminated, truncated, step_type, discount
):
    environment = gymnasium_wrapper.GymnasiumWrapper(
        Nested(terminated, truncated), discount=0.9
    )
    environment.reset()
    time_step = environment.step(0)
    assert time_step.step_type == step_type
    assert time_step.discount == np.float32(discount)
    assert time_step.reward == 2.0
    assert time_step.reward.dtype == time_step.discount.dtype == np.float32
    assert environment.done == (step_type == 2)


def test_nested_spaces_give_nested_specs_and_observations():
    environment = gymnasium_wrapper.GymnasiumWrapper(Nested())
    spec = environment.observation_spec()
    assert spec["position"].name == "observation/position"
    assert spec["rest"][0].name == "observation/rest/tuple_0"
    assert array_spec.check_arrays_nest(environment.reset().observation, spec)
    assert environment.step(0).observation["rest"][1].tolist() == [0, 1, 1]


def test_discrete_start_is_the_minimum_of_the_action_spec():
    gym_env = Nested()
    environment = gymnasium_wrapper.GymnasiumWrapper(gym_env)
    spec = environment.action_spec()
    assert (spec.minimum, spec.maximum, spec.dtype) == (-1, 1, np.int64)
    environment.reset()
    environment.step(np.array(-1))
    assert gym_env.actions == [-1]
    assert type(gym_env.actions[0]) is int


def test_observations_are_copies_of_the_spec_dtype():
    environment = gymnasium_wrapper.GymnasiumWrapper(Nested())
    first = environment.reset().observation["position"]
    second = environment.step(0).observation["position"]
    assert first.dtype == np.float32
    assert (first.tolist(), second.tolist()) == ([0.0, 0.0], [0.25, 0.25])


def test_dtype_map_sets_the_dtype_of_specs():
    environment = gymnasium_wrapper.GymnasiumWrapper(
        Nested(), spec_dtype_map={spaces.Discrete: np.int32}
    )
    assert environment.action_spec().dtype == np.int32


def test_seed_is_used_at_the_next_reset_only():
    environment = gymnasium_wrapper.GymnasiumWrapper(Nested())
    assert environment.get_info() is None
    assert environment.seed(5) == 5
    environment.reset()
    assert environment.get_info() == {"seed": 5}
    environment.reset()
    assert environment.get_info() == {"seed": None}
    environment.step(0)
    assert environment.get_info() == {"steps": 1}


def test_nan_reward_is_an_error():
    environment = gymnasium_wrapper.GymnasiumWrapper(
        gymnasium.wrappers.TransformReward(Nested(), lambda reward: float("nan"))
    )
    environment.reset()
    with pytest.raises(ValueError, match=r"reward: got NaN from Nested, expected"):
        environment.step(0)


def test_an_environment_whose_render_takes_a_mode_gets_it():
    class Drawn(gymnasium.Env):
        observation_space = action_space = spaces.Discrete(2)

        def render(self, mode="human", close=False):
            return mode

    environment = gymnasium_wrapper.GymnasiumWrapper(
        gymnasium.wrappers.TimeLimit(Drawn(), 3)
    )
    assert environment.render() == "rgb_array"
    assert environment.render("human") == "human"


def test_render_in_another_mode_says_how_to_load():
    environment = gymnasium_wrapper.GymnasiumWrapper(Nested())
    assert environment.render().shape == (4, 6, 3)
    with pytest.raises(ValueError, match=r"mode 'human'.*gym_kwargs=.'render_mode'"):
        environment.render("human")


def test_unknown_attributes_are_looked_up_in_the_gymnasium_environment():
    gym_env = gymnasium.wrappers.TimeLimit(Nested(), 3)
    environment = gymnasium_wrapper.GymnasiumWrapper(gym_env)
    assert environment.gym is gym_env
    assert environment.actions == []
    with pytest.raises(AttributeError):
        _ = environment.no_such_thing


def test_state_is_the_gymnasium_environments_own():
    environment, resumed = (
        gymnasium_wrapper.GymnasiumWrapper(gymnasium.wrappers.OrderEnforcing(Nested()))
        for _ in range(2)
    )
    environment.reset()
    environment.step(0)
    captured = py_environment.capture_state(environment)
    expected = environment.step(0)
    py_environment.restore_state(resumed, captured)
    np.testing.assert_array_equal(
        resumed.step(0).observation["position"], expected.observation["position"]
    )


def test_state_of_an_environment_without_one_names_it():
    class Stateless(gymnasium.Env):
        observation_space = action_space = spaces.Discrete(2)

    environment = gymnasium_wrapper.GymnasiumWrapper(Stateless())
    with pytest.raises(NotImplementedError, match=r"Stateless\.get_state: .* add"):
        environment.get_state()


def test_info_that_a_checkpoint_cannot_hold_is_left_out_of_the_state():
    environment = gymnasium_wrapper.GymnasiumWrapper(Nested())
    environment.reset()
    environment.get_info()["spaces"] = Nested.observation_space
    state = environment.get_state()
    assert state["info"] == {"seed": None}
    environment.set_state(state)
    assert environment.get_info() == {"seed": None}


def test_space_without_spec_is_an_error():
    env = Nested()
    env.observation_space = spaces.Text(3)
    with pytest.raises(ValueError, match=r"observation: got the space"):
        gymnasium_wrapper.GymnasiumWrapper(env)


def test_gym_wrapper_is_the_same_class():
    assert gym_wrapper.GymWrapper is gymnasium_wrapper.GymnasiumWrapper
    spec = gym_wrapper.spec_from_gym_space(spaces.Discrete(2), name="action")
    assert spec == array_spec.BoundedArraySpec((), np.int64, 0, 1)


@pytest.mark.parametrize("discount", [2, -0.5, float("nan")])
def test_a_discount_out_of_range_is_refused(discount):
    message = r"^discount: expected a number in \[0, 1\], got .*gamma of the agent"
    with pytest.raises(ValueError, match=message):
        suite_gym.load("CartPole-v1", discount=discount)
    with pytest.raises(ValueError, match=message):
        vector_py_environment.load("CartPole-v1", 2, discount=discount)


def test_the_check_of_the_order_is_not_stepped_but_what_it_wraps_is():
    class Doubled(gymnasium.RewardWrapper):
        def reward(self, reward):
            return 2 * reward

    cart_pole = gymnasium.make("CartPole-v1", disable_env_checker=True).unwrapped
    ordered = gymnasium.wrappers.OrderEnforcing(Doubled(cart_pole))
    environment = gymnasium_wrapper.GymnasiumWrapper(ordered)
    environment.step(np.array(1))  # The first one resets.
    assert ordered.has_reset
    with mock.patch.object(gymnasium.wrappers.OrderEnforcing, "step") as step:
        assert environment.step(np.array(1)).reward == 2
    step.assert_not_called()


@pytest.mark.parametrize(
    ("name", "action", "cause"),
    [("CartPole-v1", 5, AssertionError), ("FrozenLake-v1", 9, KeyError)],
)
def test_an_action_outside_its_space_that_an_environment_refuses_is_named(
    name, action, cause
):
    environment = gymnasium_wrapper.GymnasiumWrapper(
        gymnasium.make(name, disable_env_checker=True)
    )
    environment.reset()
    message = rf"^action: got {action}, expected one in Discrete\(\d\), the action "
    with pytest.raises(ValueError, match=message) as raised:
        environment.step(np.array(action))
    assert isinstance(raised.value.__cause__, cause)


def test_an_error_after_an_action_inside_its_space_is_the_environments():
    class Failing(Nested):
        def step(self, action):
            raise KeyError("door")

    environment = gymnasium_wrapper.GymnasiumWrapper(Failing())
    environment.reset()
    with pytest.raises(KeyError, match="door"):
        environment.step(np.array(1))


class Strict(gymnasium.Env):
    """Takes only the actions of its space, and uses integers as keys."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, action_space, fails=0):
        self.action_space = action_space
        self.seeds, self.fails = [], fails

    def reset(self, *, seed=None, options=None):
        self.seeds.append(seed)
        if len(self.seeds) <= self.fails:
            raise OSError("not ready")
        return np.zeros(1, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action)
        if isinstance(self.action_space, spaces.Tuple):
            {0: "left", 1: "right", 2: "up"}[action[1]]
        return np.zeros(1, np.float32), 0.0, False, False, {}


@pytest.mark.parametrize(
    "space",
    [
        spaces.Tuple((spaces.MultiBinary(2), spaces.Discrete(3))),
        spaces.Dict(b=spaces.Discrete(2), a=spaces.Box(-1.0, 1.0, (2,), np.float32)),
        spaces.Box(-1.0, 1.0, (2,), np.float32),
    ],
)
def test_actions_reach_the_environment_as_samples_of_its_space(space):
    environment = suite_gym.wrap_env(
        Strict(space), spec_dtype_map={spaces.Box: np.float64}
    )
    environment.reset()
    spec = environment.action_spec()
    environment.step(array_spec.sample_spec_nest(spec, np.random.default_rng(0)))


def test_a_seed_is_kept_for_the_reset_that_succeeds():
    inner = Strict(spaces.Discrete(2), fails=1)
    environment = gymnasium_wrapper.GymnasiumWrapper(inner)
    environment.seed(3)
    with pytest.raises(OSError, match="not ready"):
        environment.reset()
    environment.reset()
    environment.reset()
    assert inner.seeds == [3, 3, None]


def test_a_restored_state_goes_on_in_a_new_environment():
    first = suite_gym.wrap_env(gymnasium.make("CartPole-v1"))
    first.reset()
    first.step(1)
    second = suite_gym.wrap_env(gymnasium.make("CartPole-v1"))
    second.set_state(first.get_state())
    ours, theirs = second.step(0), first.step(0)
    assert int(ours.step_type) == 1
    np.testing.assert_array_equal(ours.observation, theirs.observation)


def test_the_info_of_a_step_is_a_mapping():
    class Wrong(Strict):
        def step(self, action):
            return np.zeros(1, np.float32), 0.0, False, False, [1]

    environment = gymnasium_wrapper.GymnasiumWrapper(Wrong(spaces.Discrete(2)))
    environment.reset()
    with pytest.raises(ValueError, match="step"):
        environment.step(0)
