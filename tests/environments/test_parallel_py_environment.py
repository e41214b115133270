import collections
import functools
import gc
import os
import signal
import sys
import threading
import time

import cloudpickle
import numpy as np
import pytest

from tfrl import system
from tfrl.environments import (
    batched_py_environment,
    parallel_py_environment,
    py_environment,
)
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts

# The workers need not be able to import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

Seen = collections.namedtuple("Seen", ["count", "picture"])


class Counter(py_environment.PyEnvironment):
    """Counts its steps, and does what `on_step` says at the second of them."""

    def __init__(self, length=2, limit=9, on_step=None):
        super().__init__()
        self._length = length
        self._limit = limit
        self._on_step = on_step
        self.count = 0

    def observation_spec(self):
        return array_spec.BoundedArraySpec((1,), np.int32, 0, self._limit)

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int32, 0, 9)

    def seed(self, seed):
        self.count = seed
        return seed

    def get_info(self):
        return {"count": self.count, "pid": os.getpid()}

    def get_state(self):
        return self.count

    def set_state(self, state):
        self.count = state

    def render(self, mode="rgb_array"):
        return np.full((2, 2, 3), self.count, np.uint8)

    def own(self, number, plus=0):
        return self.count + number + plus

    def fail(self):
        raise KeyError("nothing there")

    def hang(self):
        time.sleep(1000)

    def _observe(self):
        return np.array([self.count], np.int32)

    def _reset(self):
        self.count = 0
        return ts.restart(self._observe())

    def _step(self, action):
        self.count += 1
        if self.count == 2 and self._on_step is not None:
            self._on_step()
        make = ts.termination if self.count >= self._length else ts.transition
        return make(self._observe(), float(action))


class Nested(Counter):
    """Nested observations and actions, and vector rewards."""

    def observation_spec(self):
        return Seen(
            {"b": array_spec.ArraySpec((), np.bool_), "a": super().observation_spec()},
            array_spec.ArraySpec((2, 3, 1), np.uint8),
        )

    def action_spec(self):
        return {"x": super().action_spec(), "y": (array_spec.ArraySpec((2,), "f4"),)}

    def reward_spec(self):
        return array_spec.ArraySpec((2,), np.float32)

    def _observe(self):
        picture = np.full((2, 3, 1), self.count, np.uint8)
        count = {"a": super()._observe(), "b": np.bool_(self.count % 2)}
        return Seen(count, picture)

    def _reset(self):
        self.count = 0
        return ts.restart(self._observe(), reward_spec=self.reward_spec())

    def _step(self, action):
        self.count += 1
        return ts.transition(self._observe(), action["y"][0] + action["x"])


class Named(Counter):
    """Its observations are strings, which have no size."""

    def observation_spec(self):
        return array_spec.ArraySpec((), np.str_)

    def _observe(self):
        return np.array(f"step {self.count}")


class Odd(Counter):
    """Breaks its spec: the first observation has another dtype or shape."""

    def __init__(self, first):
        super().__init__(9)
        self._first = first

    def _observe(self):
        return self._first if self.count == 0 else super()._observe()


def make(*constructors, **kwargs):
    return parallel_py_environment.ParallelPyEnvironment(constructors, False, **kwargs)


def counters(*lengths, **kwargs):
    return make(*(functools.partial(Counter, length) for length in lengths), **kwargs)


def zeros(number=2):
    return np.zeros(number, np.int32)


def holds_a_lock():
    lock = threading.Lock()
    return lambda: lock


@pytest.fixture(scope="module")
def shared():
    """Two members that end after three steps."""
    with counters(3, 3) as environment:
        yield environment


def pids(environment):
    return environment.get_info()["pid"].tolist()


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    "blocking", [True, pytest.param(False, marks=pytest.mark.slow)]
)
def test_members_step_and_reset_each_on_their_own(blocking):
    with counters(1, 2, blocking=blocking) as environment:
        assert environment.reset().step_type.tolist() == [0, 0]
        steps = [environment.step(np.array([3, 4], np.int32)) for _ in range(3)]
        processes = pids(environment)
    assert [step.step_type.tolist() for step in steps] == [[2, 1], [0, 2], [2, 0]]
    assert [step.reward.tolist() for step in steps] == [[3, 4], [0, 4], [3, 0]]
    assert steps[1].observation.tolist() == [[0], [2]]
    assert steps[0].observation.dtype == np.int32
    assert len({*processes, os.getpid()}) == 3
    assert all(map(is_gone, processes))


def test_members_answer_for_themselves(shared):
    shared.reset()
    assert (shared.batched, shared.batch_size) == (True, 2)
    assert shared.action_spec() == Counter().action_spec()
    assert shared.time_step_spec() == Counter().time_step_spec()
    assert shared.observation_spec() == Counter().observation_spec()
    assert shared.seed([7, 5]) == [7, 5]
    assert shared.render()[:, 0, 0, 0].tolist() == [7, 5]
    assert shared.seed(3) == [3, 4]
    assert shared.get_info()["count"].tolist() == [3, 4]
    assert shared.current_time_step().step_type.tolist() == [0, 0]
    with pytest.raises(ValueError, match="seed: got 3 seeds, expected one for each"):
        shared.seed([1, 2, 3])
    with pytest.raises(NotImplementedError, match="mode: got 'human'"):
        shared.render("human")


def test_a_member_can_be_called_and_looked_at(shared):
    member = shared.envs[1]
    member.reset()
    assert member.step(np.int32(2)).reward == 2
    promise = member.call("own", 10, plus=5)
    assert member.count == member.access("count") == 1
    assert promise() == 16
    later = member.step(np.int32(3), blocking=False)
    assert later().observation == [2]
    assert member.own(number=20) == 22
    assert not hasattr(member, "nothing")


def test_what_a_method_raises_breaks_nothing(shared):
    member = shared.envs[0]
    with pytest.raises(NotImplementedError, match=r"env_constructors\[0\]: only pict"):
        member._apply("render", _unsupported)()
    with pytest.raises(system.ChildRaisedError, match="'nothing there'") as caught:
        member.call("fail")()
    assert "env_constructors[0]: fail raised" in str(caught.value)
    assert isinstance(caught.value.original, KeyError)
    assert shared.reset().step_type.tolist() == [0, 0]


def _unsupported(environment):
    raise NotImplementedError("only pictures")


def test_state_continues_exactly(shared):
    shared.reset()
    shared.step(zeros())
    captured = py_environment.capture_state(shared)
    expected = [shared.step(zeros()).observation.tolist() for _ in range(4)]
    with counters(3, 3) as resumed:
        py_environment.restore_state(resumed, captured)
        assert resumed.current_time_step().observation.tolist() == [[1], [1]]
        assert [resumed.step(zeros()).observation.tolist() for _ in range(4)] == (
            expected
        )


@pytest.mark.parametrize("size", [0, 1, 3])
def test_actions_of_another_batch_are_refused(shared, size):
    shared.reset()
    with pytest.raises(ValueError, match=r"action: got leading dimensions .*size 2"):
        shared.step(zeros(size))


def test_integers_of_another_size_arrive_as_they_are(shared):
    shared.reset()
    assert shared.step(np.array([1, 2])).reward.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (np.array([0.5, 2.5]), TypeError, "got dtype float64 .*expected .* int32"),
        (np.array(["up", "up"]), TypeError, "got dtype <U2, expected .* int32"),
        (np.zeros([2, 3], np.int32), ValueError, r"got shape \(3,\), expected \(\)"),
    ],
    ids=["floats", "words", "shape"],
)
def test_actions_that_break_the_spec_are_refused_and_break_nothing(
    shared, action, error, message
):
    shared.reset()
    before = shared.get_info()["count"].tolist()
    with pytest.raises(error, match=f"^action: {message}"):
        shared.step(action)
    assert shared.get_info()["count"].tolist() == before
    assert shared.step(np.array([1, 2], np.int32)).reward.tolist() == [1, 2]


def test_time_steps_are_the_caller_s_to_keep(shared):
    first = shared.reset()
    shared.step(zeros())
    assert first.observation.tolist() == [[0], [0]]


@pytest.mark.slow
def test_nests_are_the_same_as_in_one_process():
    constructors = [functools.partial(Nested, 3), functools.partial(Nested, 3)]
    action = {"x": np.array([1, 2], "i4"), "y": (np.array([[0, 1], [2, 3]], "f4"),)}
    together = batched_py_environment.BatchedPyEnvironment([c() for c in constructors])
    with make(*constructors) as apart, together:
        assert apart.reset().observation.picture.shape == (2, 2, 3, 1)
        together.reset()
        ours, expected = apart.step(action), together.step(action)
    assert isinstance(ours.observation, Seen)
    assert ours.reward.tolist() == expected.reward.tolist() == [[1, 2], [4, 5]]
    np.testing.assert_equal(ours.observation, expected.observation)


@pytest.mark.slow
def test_observations_without_a_size_travel_too():
    with make(Named, Named) as environment:
        environment.reset()
        assert environment.step(zeros()).observation.tolist() == ["step 1", "step 1"]


@pytest.mark.slow
def test_what_breaks_its_spec_is_not_cast_in_silence():
    wide = functools.partial(Odd, np.array([0.5]))
    with make(functools.partial(Counter, 9), wide) as environment:
        assert environment.reset().observation.tolist() == [[0], [0.5]]
        assert environment.step(zeros()).observation.dtype == np.int32


@pytest.mark.slow
def test_what_does_not_fit_together_names_the_member():
    odd = functools.partial(Odd, np.zeros(3, np.int32))
    with (
        make(functools.partial(Counter, 9), odd) as environment,
        pytest.raises(
            ValueError,
            match=r"^observation: got shape \(3,\), expected .* env_constructors\[1\]",
        ),
    ):
        environment.reset()


@pytest.mark.slow
def test_members_may_start_one_after_the_other(tmp_path):
    def make_one(log=str(tmp_path / "log")):
        with open(log, "a") as file:
            file.write("start ")
            file.flush()
            time.sleep(0.1)
            file.write("made ")
        return Counter()

    with parallel_py_environment.ParallelPyEnvironment([make_one] * 2):
        assert (tmp_path / "log").read_text() == "start made start made "


@pytest.mark.parametrize(
    ("constructors", "error", "message"),
    [
        ([], ValueError, r"env_constructors: got \[\], expected at least one"),
        (Counter, ValueError, "give a list of them"),
        ([Counter, Counter()], TypeError, r"\[1\]: got <.*Counter object.* a lambda"),
        ([Counter, 7], TypeError, r"env_constructors\[1\]: got 7 of type int"),
        (
            [Counter, holds_a_lock()],
            TypeError,
            r"\[1\]: got <function .* does not pickle \(TypeError: .* lock",
        ),
    ],
)
def test_wrong_constructors_are_refused_at_construction(constructors, error, message):
    with pytest.raises(error, match=message):
        parallel_py_environment.ParallelPyEnvironment(constructors)


def raise_in_constructor():
    raise ArithmeticError("no such level")


@pytest.mark.parametrize(
    ("start_serially", "constructor", "error", "message"),
    [
        pytest.param(
            True,
            raise_in_constructor,
            system.ChildRaisedError,
            "no such level",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            False,
            raise_in_constructor,
            system.ChildRaisedError,
            "Arithmetic.*no such level",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            False,
            lambda: 7,
            system.ChildRaisedError,
            "returned 7 of type int, expected a PyEn",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            False,
            lambda: os._exit(4),
            system.ChildDiedError,
            "exited with code 4 during start",
            marks=pytest.mark.slow,
        ),
        (
            False,
            functools.partial(Counter, limit=5),
            ValueError,
            "got the observation spec",
        ),
    ],
)
def test_a_member_that_cannot_be_made_is_named(
    start_serially, constructor, error, message
):
    with pytest.raises(error, match=rf"(?s)env_constructors\[1\]: .*{message}"):
        parallel_py_environment.ParallelPyEnvironment(
            [Counter, constructor], start_serially
        )


@pytest.mark.slow
def test_batched_members_are_refused():
    def constructor():
        return batched_py_environment.BatchedPyEnvironment([Counter()], False)

    with pytest.raises(system.ChildRaisedError, match="returned the batched envir"):
        make(constructor)


def test_a_member_that_does_not_start_in_time_is_named():
    with pytest.raises(system.ChildTimeoutError, match="or raise start_timeout"):
        make(functools.partial(time.sleep, 1000), start_timeout=0.1)


def kill_oneself():
    os.kill(os.getpid(), signal.SIGKILL)


def divide_by_zero():
    return 1 / 0


def hang():
    time.sleep(1000)


FAILURES = {
    "dies": (kill_oneself, system.ChildDiedError, "was killed by SIGKILL during step"),
    "exits": (sys.exit, system.ChildRaisedError, "SystemExit"),
    "raises": (divide_by_zero, system.ChildRaisedError, "ZeroDivisionError: division"),
    "hangs": (hang, system.ChildTimeoutError, "within 0.2 s, .* raise step_timeout"),
}


@pytest.mark.parametrize(
    ("failure", "blocking"),
    [
        ("dies", True),
        ("raises", False),
        pytest.param("hangs", False, marks=pytest.mark.slow),
        pytest.param("dies", False, marks=pytest.mark.slow),
        pytest.param("exits", False, marks=pytest.mark.slow),
    ],
)
def test_a_member_that_fails_in_a_step_is_named_and_breaks_all(failure, blocking):
    on_step, error, message = FAILURES[failure]
    environment = make(
        functools.partial(Counter, 9),
        functools.partial(Counter, 9, on_step=on_step),
        blocking=blocking,
        step_timeout=0.2 if failure == "hangs" else 60,
    )
    environment.reset()
    environment.step(zeros())
    processes = [member._child.pid for member in environment.envs]
    with pytest.raises(
        error, match=rf"(?s)env_constructors\[1\]: .*{message}"
    ) as first:
        environment.step(zeros())
    if failure in ("raises", "hangs"):
        assert f"in {on_step.__name__}" in str(first.value)
    for use in (environment.reset, environment.get_info, lambda: environment.seed(1)):
        with pytest.raises(RuntimeError, match=r"broken since .*tors\[1\].* close it"):
            use()
    environment.close()
    assert all(map(is_gone, processes))
    with pytest.raises(RuntimeError, match="the environment is closed"):
        environment.step(zeros())
    environment.close()


@pytest.mark.slow
def test_a_member_that_dies_between_steps_is_named():
    environment = counters(9, 9, 9)
    environment.reset()
    os.kill(environment.envs[2]._child.pid, signal.SIGKILL)
    environment.envs[2]._child._process.wait()
    with pytest.raises(system.ChildDiedError, match=r"\[2\]: .* killed by SIGKILL"):
        environment.step(zeros(3))
    environment.close()


def test_closing_twice_and_using_afterwards():
    environment = counters(2)
    environment.close()
    environment.close()
    with pytest.raises(RuntimeError, match="ParallelPyEnvironment: the environment is"):
        environment.reset()
    with pytest.raises(
        RuntimeError, match=r"env_constructors\[0\]: the environment is"
    ):
        environment.envs[0].reset()


@pytest.mark.slow
def test_what_closing_raises_is_told_when_all_have_ended():
    class Clinging(Counter):
        def close(self):
            raise KeyError("cannot let go")

    environment = make(Clinging, Counter)
    processes = pids(environment)
    with pytest.raises(system.ChildRaisedError, match="cannot let go"):
        environment.close()
    assert all(map(is_gone, processes))


@pytest.mark.slow
def test_an_environment_that_is_forgotten_ends_its_processes():
    environment = counters(2)
    (process,) = pids(environment)
    del environment
    gc.collect()
    assert is_gone(process)


@pytest.mark.slow
def test_an_interrupted_step_is_finished_by_the_next(monkeypatch):
    def interrupt(replies, *rest):
        raise KeyboardInterrupt

    with counters(9, 9) as environment:
        environment.reset()
        with monkeypatch.context() as patch:
            patch.setattr(parallel_py_environment.child_process, "wait", interrupt)
            with pytest.raises(KeyboardInterrupt):
                environment.step(zeros())
        step = environment.step(np.array([3, 4], np.int32))
    assert step.reward.tolist() == [3, 4]
    assert step.observation.tolist() == [[2], [2]]


@pytest.mark.slow
def test_steps_inside_of_tensorflow_as_in_one_process():
    from tfrl.drivers import dynamic_step_driver
    from tfrl.environments import tf_py_environment
    from tfrl.policies import random_tf_policy

    def collect(py_env):
        environment = tf_py_environment.TFPyEnvironment(py_env)
        policy = random_tf_policy.RandomTFPolicy(
            environment.time_step_spec(), environment.action_spec(), seed=1
        )
        seen = []
        driver = dynamic_step_driver.DynamicStepDriver(
            environment, policy, observers=[seen.append], num_steps=6
        )
        time_step, _ = driver.run()
        return time_step.observation.numpy().tolist()

    with counters(2, 3) as environment:
        apart = collect(environment)
    members = [Counter(2), Counter(3)]
    assert apart == collect(batched_py_environment.BatchedPyEnvironment(members))
