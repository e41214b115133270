"""MiniGrid's environments and wrappers continue bit for bit."""

import functools

import gymnasium
import pytest

from tfrl.environments import py_environment, suite_gym, suites
from tfrl.environments.gymnasium import minigrid_state, state_adapters
from tfrl.savers import serialization

minigrid = pytest.importorskip("minigrid")
from minigrid import minigrid_env, wrappers  # noqa: E402

LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE = range(6)


def load(name, *gym_env_wrappers):
    return suite_gym.load(name, gym_env_wrappers=gym_env_wrappers)


def as_arrays(name):
    return suites.load(name, 1)


def copy_of(env, name):
    """Another environment with the state of `env`, which went through bytes."""
    state = serialization.to_bytes(state_adapters.get_state(env))
    other = gymnasium.make(name)
    other.reset(seed=99)
    state_adapters.set_state(other, serialization.from_bytes(state))
    return other.unwrapped


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MiniGrid-Empty-Random-5x5-v0", "flat"),
        ("MiniGrid-DoorKey-5x5-v0", "flat"),
        ("MiniGrid-Unlock-v0", "image"),
        ("MiniGrid-Dynamic-Obstacles-6x6-v0", "image"),  # Each step draws numbers.
        ("MiniGrid-LavaCrossingS9N1-v0", "image"),  # A class is an attribute.
        ("BabyAI-PutNextS5N2Carrying-v0", "image"),
    ],
)
def test_a_grid_continues_bit_for_bit(name, kind, check_resuming):
    make = functools.partial(suites.load, name, 1, grid_observations=kind)
    check_resuming(make, 12, more=25)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_registered_grid_continues_bit_for_bit(check_resuming):
    for name in [*gymnasium.registry]:
        if name.startswith(("MiniGrid-", "BabyAI-")):
            make = functools.partial(load, name, wrappers.ImgObsWrapper)
            try:
                make().reset()
            except (gymnasium.error.DependencyNotInstalled, FileNotFoundError):
                continue  # The wheel lacks the patterns of its WFC environments.
            check_resuming(make, 40, 200)


def face(env, place, direction):
    env.agent_pos, env.agent_dir = place, direction


def test_the_carried_key_opens_the_door_that_the_environment_watches():
    """In Unlock the episode ends when the attribute `door` of the environment opens."""
    name = "MiniGrid-Unlock-v0"
    env = gymnasium.make(name)
    env.reset(seed=3)
    grid = env.unwrapped.grid
    key = next(cell for cell in grid.grid if cell is not None and cell.type == "key")
    x, y = map(int, key.cur_pos)
    face(env.unwrapped, (x - 1, y), 0)
    env.unwrapped.step(PICK_UP)
    other = copy_of(env, name)
    assert other.carrying.type == "key"
    x, y = next(
        (x, y)
        for x in range(other.width)
        for y in range(other.height)
        if other.grid.get(x, y) is other.door
    )
    face(other, (x - 1, y), 0)
    _, reward, terminated, _, _ = other.step(TOGGLE)
    assert terminated
    assert reward > 0
    assert other.step_count == env.unwrapped.step_count + 1


def test_an_instruction_watches_the_restored_environment():
    name = "BabyAI-PickupLoc-v0"
    env = gymnasium.make(name)
    env.reset(seed=0)
    other = copy_of(env, name)
    assert other.instrs.env is other
    wanted = other.instrs.desc.obj_set[0]
    assert wanted is other.grid.get(*wanted.cur_pos)
    assert (other.mission, other.max_steps) == (
        env.unwrapped.mission,
        env.unwrapped.max_steps,
    )


def test_a_list_that_two_attributes_share_is_shared_again():
    name = "MiniGrid-Empty-5x5-v0"
    env = gymnasium.make(name)
    env.reset(seed=0)
    env.unwrapped.first = env.unwrapped.second = [1, {"a": (2, None)}]
    other = copy_of(env, name)
    assert other.first == [1, {"a": (2, None)}]
    assert other.second is other.first


@pytest.mark.parametrize(
    "wrapper",
    [
        wrappers.ActionBonus,
        wrappers.PositionBonus,
        wrappers.DirectionObsWrapper,
        functools.partial(wrappers.ReseedWrapper, seeds=(4, 5, 6)),
        functools.partial(wrappers.StochasticActionWrapper, prob=0.5),
    ],
)
def test_a_wrapper_continues_bit_for_bit(wrapper, check_resuming):
    numbers = functools.partial(
        gymnasium.wrappers.FilterObservation, filter_keys=["image", "goal_direction"]
    )
    if wrapper is not wrappers.DirectionObsWrapper:
        numbers = wrappers.ImgObsWrapper
    check_resuming(
        lambda: load("MiniGrid-Empty-Random-5x5-v0", wrapper, numbers), 45, more=30
    )


def test_every_wrapper_of_minigrid_has_a_state():
    known = {
        name
        for name in state_adapters._BUILT_IN
        if name.startswith("minigrid.wrappers:")
    }
    assert known == {
        f"minigrid.wrappers:{name}"
        for name, kind in vars(wrappers).items()
        if isinstance(kind, type) and kind.__module__ == "minigrid.wrappers"
    }


class Mine(minigrid_env.MiniGridEnv):
    """A user's own grid, with a state of its own."""

    def __init__(self, memory=None):
        self.memory = memory
        self.visits = 0
        space = minigrid_env.MissionSpace(mission_func=lambda: "go")
        super().__init__(mission_space=space, grid_size=5)

    def _gen_grid(self, width, height):
        self.grid = minigrid_env.Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        self.place_agent()
        self.mission = "go"

    def step(self, action):
        self.visits += 1
        observation, _, *rest = super().step(action)
        return (observation, self.visits, *rest)


def test_a_grid_of_ones_own_continues_bit_for_bit(check_resuming):
    check_resuming(
        lambda: suite_gym.wrap_env(Mine(), gym_env_wrappers=[wrappers.ImgObsWrapper])
    )


def test_an_attribute_that_cannot_be_saved_is_named():
    environment = suite_gym.wrap_env(
        Mine(memory=[minigrid]), gym_env_wrappers=[wrappers.ImgObsWrapper]
    )
    environment.reset()
    with pytest.raises(
        NotImplementedError,
        match=r"^Mine\.memory\[0\]: got a builtins:module, expected",
    ):
        environment.get_state()


@pytest.mark.parametrize(
    "name", ["subprocess:Popen", "minigrid.core.grid:np", "minigrid.core.grid:Wall"]
)
def test_a_state_that_names_another_class_is_refused(name):
    """The file of a checkpoint may come from somebody else."""
    environment = as_arrays("MiniGrid-Empty-5x5-v0")
    environment.reset()
    captured = py_environment.capture_state(environment)
    nodes = state_adapters.get_state(environment.gym)["states"][-1]
    with pytest.raises(ValueError, match=f"class {name}, expected a class of MiniGrid"):
        minigrid_state.set_state(
            environment.gym.unwrapped, [*nodes, (name, {"args": "true"})]
        )
    py_environment.restore_state(environment, captured)
