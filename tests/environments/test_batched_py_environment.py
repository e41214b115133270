import subprocess
import sys
import threading

import numpy as np
import pytest

from tfrl import testing
from tfrl.environments import batched_py_environment, py_environment
from tfrl.specs import array_spec


class Counter(testing.CountingEnvironment):
    """Rewards a step with its action; remembers the thread of the last one."""

    def __init__(self, length=2, limit=9):
        count = array_spec.BoundedArraySpec((1,), np.int32, 0, limit)
        super().__init__(
            length,
            observation_spec={"count": count},
            action_spec=array_spec.BoundedArraySpec((), np.int32, 0, 9),
            reward=lambda count, action: float(action),
        )

    def _step(self, action):
        self.thread = threading.get_ident()
        return super()._step(action)


def make(*lengths, multithreading=False):
    members = [Counter(length) for length in lengths]
    return batched_py_environment.BatchedPyEnvironment(members, multithreading)


def test_members_step_the_same_with_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(batched_py_environment.processors, "number", lambda: 2)
    with make(1, 2, 3, multithreading="fastest") as environment:
        environment.reset()
        for count in range(30):
            step = environment.step(np.array([3, 4, 5], np.int32))
            own = [(count + 1) % (length + 1) for length in (1, 2, 3)]
            assert step.step_type.tolist() == [
                0 if x == 0 else 2 if x == length else 1
                for x, length in zip(own, (1, 2, 3), strict=True)
            ]
            assert step.observation["count"][:, 0].tolist() == own


def test_the_fastest_number_of_threads_is_one_one_for_a_processor_or_a_member(
    monkeypatch,
):
    monkeypatch.setattr(batched_py_environment.processors, "number", lambda: 2)
    with make(99, 99, 99, 99, multithreading="fastest") as environment:
        environment.reset()
        threads = []
        for _ in range(6):
            environment.step(np.zeros(4, np.int32))
            threads.append([member.thread for member in environment.envs])
    own = threading.get_ident()
    assert threads[0] == threads[3] == [own] * 4
    for first, second, third, fourth in (threads[1], threads[4]):
        assert first == second != own
        assert third == fourth != own
    assert own not in threads[2] + threads[5]


def test_a_failure_in_a_part_of_the_members_is_named(monkeypatch):
    monkeypatch.setattr(batched_py_environment.processors, "number", lambda: 2)
    members = [Slow(), Slow(), Slow(), Slow(error=ArithmeticError("last"))]
    environment = batched_py_environment.BatchedPyEnvironment(members, "fastest")
    environment.reset()
    for _ in range(3):  # One thread, two threads and four.
        with pytest.raises(ArithmeticError, match="last") as caught:
            environment.step(np.zeros(4, np.int32))
        assert "This is from envs[3]" in caught.value.__notes__[-1]
        environment._thread_counts.took(1.0)
    assert [member.count for member in members[:3]] == [3, 3, 3]
    environment.close()


def test_other_values_of_multithreading_are_refused():
    with pytest.raises(ValueError, match=r"multithreading: got 'quick', expected True"):
        make(1, 2, multithreading="quick")


@pytest.mark.parametrize("multithreading", [True, False])
def test_members_step_and_reset_each_on_their_own(multithreading):
    with make(1, 2, multithreading=multithreading) as environment:
        assert environment.reset().step_type.tolist() == [0, 0]
        steps = [environment.step(np.array([3, 4], np.int32)) for _ in range(3)]
        assert [step.step_type.tolist() for step in steps] == [[2, 1], [0, 2], [2, 0]]
        assert [step.reward.tolist() for step in steps] == [[3, 4], [0, 4], [3, 0]]
        assert steps[1].observation["count"].tolist() == [[0], [2]]
        own_thread = environment.envs[0].thread == threading.get_ident()
        assert own_thread != multithreading
    assert all(member.closed for member in environment.envs)


def test_members_answer_for_themselves():
    environment = make(3, 3)
    environment.reset()
    environment.envs[1].step(0)
    assert (environment.batched, environment.batch_size) == (True, 2)
    assert environment.seed(5) == [5, 6]
    assert environment.get_info()["count"].tolist() == [0, 1]
    assert environment.render()[:, 0, 0, 0].tolist() == [0, 1]
    assert environment.current_time_step().step_type.tolist() == [0, 1]
    assert environment.action_spec() == Counter().action_spec()
    assert environment.time_step_spec() == Counter().time_step_spec()


def with_infos(*infos):
    environment = make(*[1] * len(infos))
    for member, info in zip(environment.envs, infos, strict=True):
        member.get_info = lambda info=info: info
    return environment


def test_infos_of_one_structure_are_stacked():
    info = with_infos({"lives": 3, "x": [1.0]}, {"lives": 5, "x": [2.0]}).get_info()
    assert info["lives"].tolist() == [3, 5]
    assert [np.asarray(x).tolist() for x in info["x"]] == [[1, 2]]
    assert with_infos({}, {}).get_info() == {}


@pytest.mark.parametrize("other", [{"seed": 5}, {"lives": np.zeros(2)}, None])
def test_infos_that_differ_are_a_list(other):
    assert with_infos({"lives": 3}, other).get_info() == [{"lives": 3}, other]


@pytest.mark.parametrize("at_exit", ["", "import atexit; atexit.register(env.close)"])
def test_a_program_that_does_not_close_it_ends_silently(at_exit):
    code = f"""
from tfrl.environments import batched_py_environment, random_py_environment
from tfrl.specs import array_spec
spec = array_spec.BoundedArraySpec((), "int32", 0, 1)
env = batched_py_environment.BatchedPyEnvironment(
    [random_py_environment.RandomPyEnvironment(spec, spec) for _ in range(2)]
)
env.reset()
{at_exit}
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stderr == ""


def test_state_continues_exactly():
    environment = make(2, 3)
    for _ in range(3):
        environment.step(np.zeros(2, np.int32))
    captured = py_environment.capture_state(environment)
    expected = [environment.step(np.zeros(2)).step_type.tolist() for _ in range(4)]
    resumed = make(2, 3)
    py_environment.restore_state(resumed, captured)
    assert [resumed.step(np.zeros(2)).step_type.tolist() for _ in range(4)] == expected


@pytest.mark.parametrize("size", [0, 1, 3])
def test_actions_of_another_batch_are_refused(size):
    environment = make(2, 2)
    environment.reset()
    with pytest.raises(ValueError, match=r"action: got leading dimensions .*size 2"):
        environment.step(np.zeros(size, np.int32))


def test_members_must_fit_together():
    with pytest.raises(ValueError, match=r"envs: got \[\], expected at least one"):
        make()
    with pytest.raises(ValueError, match="no batched one"):
        batched_py_environment.BatchedPyEnvironment([make(2)])
    with pytest.raises(
        ValueError,
        match=r"envs\[2\]: got the observation/count spec .*maximum=5.*, expected the "
        r"first member's, .*maximum=9",
    ):
        batched_py_environment.BatchedPyEnvironment(
            [Counter(), Counter(), Counter(limit=5)]
        )


class Slow(Counter):
    """May wait for another member, and may fail; says when it has stepped."""

    def __init__(self, wait_for=None, error=None):
        super().__init__(9)
        self.stepped = threading.Event()
        self._wait_for = wait_for
        self._error = error

    def _step(self, action):
        try:
            if self._wait_for is not None:
                assert self._wait_for.stepped.wait(30)
            if self._error is not None:
                raise self._error
            return super()._step(action)
        finally:
            self.stepped.set()


def test_members_step_at_the_same_time_and_stay_in_order():
    last = Slow()
    middle = Slow(wait_for=last)
    members = [Slow(wait_for=middle), middle, last]
    with batched_py_environment.BatchedPyEnvironment(members) as environment:
        environment.reset()
        step = environment.step(np.array([1, 2, 3], np.int32))
    assert step.reward.tolist() == [1, 2, 3]


def test_the_first_member_that_fails_is_named_whenever_it_does():
    last = Slow(error=KeyError("last"))
    members = [Slow(), Slow(wait_for=last, error=ArithmeticError("middle")), last]
    environment = batched_py_environment.BatchedPyEnvironment(members)
    environment.reset()
    with pytest.raises(ArithmeticError, match="middle") as caught:
        environment.step(np.zeros(3, np.int32))
    assert "This is from envs[1]" in caught.value.__notes__[0]
    assert members[0].count == 1
    environment.close()


def test_a_closed_environment_says_so():
    environment = make(2, 2, multithreading=True)
    environment.reset()
    environment.close()
    environment.close()
    with pytest.raises(RuntimeError, match=r"got a call after close\(\)"):
        environment.step(np.zeros(2, np.int32))


def test_time_steps_that_do_not_fit_together_name_the_member():
    odd = testing.CountingEnvironment(
        observation_spec=Counter().observation_spec(),
        action_spec=Counter().action_spec(),
        observe=lambda count: {"count": np.zeros(3, np.int32)},
    )
    environment = batched_py_environment.BatchedPyEnvironment([Counter(), odd], False)
    with pytest.raises(
        ValueError,
        match=r"^observation/count: got shape \(3,\), expected \(1,\), .* envs\[1\]; ",
    ):
        environment.reset()


def test_unstacks_nested_actions():
    actions = {"a": np.array([[1, 2], [3, 4]]), "b": (np.array([5, 6]),)}
    first, second = batched_py_environment.unstack_actions(actions)
    assert first["a"].tolist() == [1, 2]
    assert first["b"] == (5,)
    assert second["a"].tolist() == [3, 4]
    assert second["b"] == (6,)
    with pytest.raises(ValueError, match="expected the batch size in all"):
        batched_py_environment.unstack_actions({"a": np.zeros(2), "b": np.zeros(3)})


def test_a_restored_batch_has_its_time_step():
    first, second = make(4, 5), make(4, 5)
    first.reset()
    first.step(np.array([1, 2]))
    second.set_state(first.get_state())
    with pytest.raises(
        ValueError, match=r"^state: got 1, expected the states of 2 mem"
    ):
        second.set_state(first.get_state()[:1])
    np.testing.assert_array_equal(
        second.current_time_step().reward, first.current_time_step().reward
    )
    assert second.step(np.array([3, 4])).step_type.tolist() == [1, 1]
