"""Properties of every wrapper, single and batched."""

import numpy as np
import pytest
import tree

from tfrl.environments import (
    batched_py_environment,
    random_py_environment,
    utils,
    wrappers,
)
from tfrl.specs import array_spec


class FirstAsGoal(wrappers.GoalReplayEnvWrapper):
    """Observes the start of the episode instead of the place."""

    def get_trajectory_with_goal(self, trajectory, goal):
        return trajectory._replace(observation=goal)

    def get_goal_from_trajectory(self, trajectory):
        return trajectory.observation


CHOICE = array_spec.BoundedArraySpec((), np.int32, -1, 2, name="choice")
LAMPS = array_spec.BoundedArraySpec((2, 2), np.int8, 0, 1, name="lamps")
FORCE = array_spec.BoundedArraySpec((2,), np.float32, -1, 1, name="force")

SINGLE = {
    "TimeLimit": (lambda env, **k: wrappers.TimeLimit(env, 4, **k), CHOICE),
    "ActionRepeat": (lambda env, **k: wrappers.ActionRepeat(env, 2, **k), CHOICE),
}
WRAPPERS = {
    "Base": (wrappers.PyEnvironmentBaseWrapper, CHOICE),
    "Flatten": (
        lambda env, **k: wrappers.FlattenActionWrapper(env, np.float32, **k),
        {"choice": CHOICE, "force": FORCE},
    ),
    "Filter": (
        lambda env, **k: wrappers.ObservationFilterWrapper(env, [0, 2], **k),
        CHOICE,
    ),
    "FlattenObservations": (wrappers.FlattenObservationsWrapper, CHOICE),
    "Discretize": (
        lambda env, **k: wrappers.ActionDiscretizeWrapper(env, 3, **k),
        FORCE,
    ),
    "Enumerate": (wrappers.EnumerateActionsWrapper, {"a": CHOICE, "b": LAMPS}),
    "Float32": (
        wrappers.Float32ActionsWrapper,
        {"choice": CHOICE, "force": FORCE.replace(dtype=np.float64)},
    ),
    "Clip": (wrappers.ActionClipWrapper, {"choice": CHOICE, "force": FORCE}),
    "Offset": (wrappers.ActionOffsetWrapper, CHOICE),
    "GoalReplay": (FirstAsGoal, CHOICE),
    "History": (
        lambda env, **k: wrappers.HistoryWrapper(env, 2, include_actions=True, **k),
        {"choice": CHOICE, "force": FORCE},
    ),
    "TiledHistory": (
        lambda env, **k: wrappers.HistoryWrapper(env, 3, tile_first_step_obs=True, **k),
        CHOICE,
    ),
    "OneHot": (wrappers.OneHotActionWrapper, {"choice": CHOICE, "force": FORCE}),
    "ExtraDisabled": (
        lambda env, **k: wrappers.ExtraDisabledActionsWrapper(env, 2, **k),
        CHOICE,
    ),
    "NumpyState": (wrappers.NumpyStateWrapper, CHOICE),
    "RunStats": (lambda env, **_: wrappers.RunStats(env), CHOICE),
    "Profiler": (
        lambda env, **_: wrappers.PerformanceProfiler(env, lambda _: None, 5),
        CHOICE,
    ),
}
CASES = [(name, None) for name in (*SINGLE, *WRAPPERS)] + [
    (name, size) for name in WRAPPERS for size in (1, 7)
]
EVERY_CASE = pytest.mark.parametrize(("name", "size"), CASES)


def make(name, size, **kwargs):
    wrap, action_spec = {**SINGLE, **WRAPPERS}[name]
    observation_spec = array_spec.BoundedArraySpec((3,), np.float32, 1, 2)
    members = [
        random_py_environment.RandomPyEnvironment(
            observation_spec, action_spec, 0.4, discount=0.5, seed=seed
        )
        for seed in range(size or 1)
    ]
    if size is None:
        return wrap(members[0], **kwargs)
    batch = batched_py_environment.BatchedPyEnvironment(members, multithreading=False)
    return wrap(batch, **kwargs)


def play(environment, steps):
    """Plays the same random allowed actions in each call."""
    rng = np.random.default_rng(0)
    outer = () if environment.batch_size is None else (environment.batch_size,)
    spec = environment.action_spec()
    if isinstance(environment, wrappers.ExtraDisabledActionsWrapper):
        spec = environment.wrapped_env().action_spec()
    return [
        environment.step(array_spec.sample_spec_nest(spec, rng, outer))
        for _ in range(steps)
    ]


def assert_equal(time_steps, others):
    for one, other in zip(tree.flatten(time_steps), tree.flatten(others), strict=True):
        np.testing.assert_array_equal(one, other)


@EVERY_CASE
def test_time_steps_follow_the_specs_and_the_order_of_step_types(name, size):
    splitter = (lambda observation: observation) if name == "ExtraDisabled" else None
    utils.validate_py_environment(
        make(name, size), 2, observation_and_action_constraint_splitter=splitter
    )


@EVERY_CASE
def test_a_saved_state_continues_bit_for_bit(name, size):
    environment = make(name, size)
    # Enough steps for members to be in the middle or at the end of an episode.
    play(environment, 5)
    state = environment.get_state()
    expected = play(environment, 10)
    resumed = make(name, size)
    resumed.set_state(state)
    assert_equal(play(resumed, 10), expected)
    environment.set_state(state)
    assert_equal(play(environment, 10), expected)


@EVERY_CASE
def test_auto_reset_is_the_same_on_either_side(name, size):
    assert_equal(
        play(make(name, size, handle_auto_reset=False), 10),
        play(make(name, size, handle_auto_reset=True), 10),
    )


@pytest.mark.parametrize("name", [*SINGLE, *WRAPPERS])
def test_seeds_and_pictures_come_through(name):
    environment, other = make(name, None), make(name, None)
    for env in (environment, other):
        env.seed(9)
    assert_equal(play(environment, 5), play(other, 5))
    assert environment.render().dtype == np.uint8
    environment.close()
