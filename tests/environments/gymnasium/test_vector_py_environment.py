import gc
import inspect
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from tfrl.environments import suite_gym
from tfrl.environments.gymnasium import vector_py_environment
from tfrl.environments.gymnasium.vector_py_environment import VectorPyEnvironment
from tfrl.specs import array_spec
from tfrl.system import child_errors

# The workers of an AsyncVectorEnv cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Walk(gymnasium.Env):
    """Its observation is its whole state, so that every transition can be replayed.

    An observation is `[position, steps so far, length of the episode]`. Episodes end
    in turn with a termination, a truncation, and both at once.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = spaces.Discrete(3)
    render_mode = "rgb_array"
    lengths = (1, 4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        length = self.np_random.integers(*self.lengths, endpoint=True)
        self.state = np.array([self.np_random.random(), 0, length], np.float32)
        return self.state.copy(), {}

    def step(self, action):
        reward = float(self.state[0] + 10 * action)
        self.state[0] = np.float32(0.5) * self.state[0] + np.float32(action)
        self.state[1] += 1
        done = bool(self.state[1] >= self.state[2])
        kind = int(self.state[2]) % 3
        return self.state.copy(), reward, done and kind != 1, done and kind != 2, {}

    def render(self):
        return np.full((2, 3, 3), int(self.state[1]), np.uint8)


class ShortWalk(Walk):
    lengths = (1, 1)


class Nested(Walk):
    """Nested observations and actions."""

    observation_space = spaces.Dict(
        walk=Walk.observation_space, rest=spaces.Tuple((spaces.Discrete(9),))
    )
    action_space = spaces.Dict(
        move=spaces.Discrete(3, start=0), force=spaces.Box(-1.0, 1.0, (2,), np.float32)
    )

    def reset(self, *, seed=None, options=None):
        walk, info = super().reset(seed=seed)
        return {"walk": walk, "rest": (0,)}, info

    def step(self, action):
        walk, *rest = super().step(action["move"])
        return {"walk": walk, "rest": (int(self.state[1]),)}, *rest


class Failing(Walk):
    def step(self, action):
        raise ValueError("the wheel came off")


class Dying(Walk):
    def step(self, action):
        os._exit(7)


def replay(observation, action):
    """Returns the reward, observation, step type and discount that must follow."""
    env = Walk()
    env.reset()
    env.state = np.array(observation, np.float32)
    next_observation, reward, terminated, truncated, _ = env.step(int(action))
    step_type = 2 if terminated or truncated else 1
    return np.float32(reward), next_observation, step_type, 0.0 if terminated else 0.9


def assert_no_ghosts(environment, steps=60, latest_start=0):
    """Replays every transition that is not from a LAST step, and returns all steps."""
    rng = np.random.default_rng(0)
    environment.seed(3)
    time_step = environment.reset()
    history = [time_step]
    for _ in range(steps):
        actions = rng.integers(0, 3, environment.batch_size)
        next_step = environment.step(actions)
        for member, action in enumerate(actions):
            if time_step.step_type[member] == 2:
                assert next_step.step_type[member] == 0
                assert next_step.reward[member] == 0.0
                assert next_step.discount[member] == 1.0
                assert next_step.observation[member][1] <= latest_start
                continue
            reward, observation, step_type, discount = replay(
                time_step.observation[member], action
            )
            assert next_step.reward[member] == reward
            assert next_step.observation[member].tolist() == observation.tolist()
            assert next_step.step_type[member] == step_type
            assert next_step.discount[member] == np.float32(discount)
        time_step = next_step
        history.append(time_step)
    return history


def assert_same_history(history, other):
    for left, right in zip(history, other, strict=True):
        for ours, theirs in zip(left, right, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def sync(mode=AutoresetMode.NEXT_STEP, env=Walk, num_envs=3, **kwargs):
    return SyncVectorEnv([env] * num_envs, autoreset_mode=mode, **kwargs)


def async_(mode=AutoresetMode.NEXT_STEP, env=Walk, num_envs=3, **kwargs):
    return AsyncVectorEnv(
        [env] * num_envs, autoreset_mode=mode, context="forkserver", **kwargs
    )


@pytest.fixture(scope="module")
def reference():
    """The history in NEXT_STEP, in which Gymnasium itself resets in the next step."""
    return assert_no_ghosts(VectorPyEnvironment(sync(), discount=0.9))


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("copy", [True, False])
def test_sync_in_every_mode_holds_no_ghost_transition(mode, copy, reference):
    environment = VectorPyEnvironment(sync(mode, copy=copy), discount=0.9)
    assert_same_history(assert_no_ghosts(environment), reference)


@pytest.mark.parametrize("shared_memory", [True, False])
def test_async_holds_no_ghost_transition(shared_memory, reference):
    vector_env = async_(shared_memory=shared_memory)
    with VectorPyEnvironment(vector_env, discount=0.9) as environment:
        assert_same_history(assert_no_ghosts(environment), reference)
        # An explicit reset, right after some members have ended, is not undone.
        while not environment.current_time_step().is_last().any():
            environment.step(np.zeros(3, np.int64))
        assert_same_history(assert_no_ghosts(environment), reference)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
@pytest.mark.parametrize("shared_memory", [True, False])
def test_async_in_another_mode_is_refused_with_the_remedy(mode, shared_memory):
    vector_env = async_(mode, num_envs=1, shared_memory=shared_memory)
    remedy = r"vector_kwargs=\{'autoreset_mode': AutoresetMode.NEXT_STEP\}"
    with pytest.raises(
        ValueError, match=rf"vector_env: got .*{mode.name}, .*make_vec.*{remedy}"
    ):
        VectorPyEnvironment(vector_env)
    vector_env.close()


def test_single_step_episodes_alternate():
    for mode in AutoresetMode:
        environment = VectorPyEnvironment(sync(mode, ShortWalk), discount=0.9)
        history = assert_no_ghosts(environment, steps=9)
        types = [step.step_type.tolist() for step in history]
        assert types == [[0, 0, 0], [2, 2, 2]] * 5


def test_native_cartpole_follows_the_single_environments_physics():
    environment = vector_py_environment.load("CartPole-v1", 4, max_episode_steps=30)
    assert type(environment.gym).__name__ == "CartPoleVectorEnv"
    single = gymnasium.make("CartPole-v1")
    single.reset()
    environment.seed(0)
    time_step = environment.reset()
    seen = set()
    for step in range(200):
        actions = np.array([0, 1, step % 2, (step // 2) % 2])
        next_step = environment.step(actions)
        for member in range(4):
            kind = int(time_step.step_type[member]), int(next_step.step_type[member])
            seen.add((*kind, float(next_step.discount[member])))
            if kind[0] == 2:
                assert kind[1] == 0
                assert next_step.reward[member] == 0.0
                continue
            single.unwrapped.state = tuple(time_step.observation[member].astype(float))
            single.unwrapped.steps_beyond_terminated = None
            observation, reward, terminated, _, _ = single.step(int(actions[member]))
            np.testing.assert_allclose(
                next_step.observation[member], observation, atol=1e-5
            )
            assert next_step.reward[member] == reward
            if terminated:
                assert (kind[1], next_step.discount[member]) == (2, 0.0)
        time_step = next_step
    # Terminations, and truncations that keep their discount, were both met.
    assert {(1, 2, 0.0), (1, 2, 1.0), (2, 0, 1.0)} <= seen


class Custom(gymnasium.vector.VectorWrapper):
    """No plain SyncVectorEnv, so its autoreset mode cannot be switched."""


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_custom_environment_that_cannot_hold_a_member_is_refused(mode):
    with pytest.raises(ValueError, match=rf"vector_env: .*{mode.name}.*NEXT_STEP"):
        VectorPyEnvironment(Custom(sync(mode)))


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
@pytest.mark.parametrize("env", [Walk, ShortWalk])
def test_dropping_first_transitions_holds_no_ghost_transition(mode, env):
    environment = VectorPyEnvironment(
        Custom(sync(mode, env)), discount=0.9, drop_first_transitions=True
    )
    history = assert_no_ghosts(environment, steps=60, latest_start=1)
    starts = {
        float(step.observation[i][1])
        for step in history[1:]
        for i in np.flatnonzero(step.is_first())
    }
    # An episode that ended within its hidden transition is not shown.
    assert starts == ({0.0, 1.0} if env is Walk else {0.0})


def test_custom_environment_in_next_step_mode_is_taken(reference):
    environment = VectorPyEnvironment(Custom(sync()), discount=0.9)
    assert_same_history(assert_no_ghosts(environment), reference)


def test_gymnasium_wrappers_in_next_step_mode_keep_the_boundaries():
    vector_env = gymnasium.wrappers.vector.RecordEpisodeStatistics(sync())
    assert_no_ghosts(VectorPyEnvironment(vector_env, discount=0.9))


def test_wrongly_declared_mode_is_noticed():
    vector_env = Custom(sync(AutoresetMode.SAME_STEP, ShortWalk))
    vector_env.metadata = {}
    environment = VectorPyEnvironment(vector_env)
    environment.reset()
    with pytest.raises(RuntimeError, match=r"infos: got 'final_obs'.*declare"):
        environment.step(np.zeros(3, np.int64))


def test_unknown_mode_is_an_error():
    vector_env = Custom(sync())
    vector_env.metadata = {"autoreset_mode": "sometimes"}
    with pytest.raises(ValueError, match=r"autoreset_mode'\]: got 'sometimes'"):
        VectorPyEnvironment(vector_env)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_nested_spaces_are_batched_leaf_by_leaf(mode):
    environment = VectorPyEnvironment(sync(mode, Nested))
    spec = environment.observation_spec()
    batched = array_spec.add_outer_dims_nest(spec, (3,))
    time_step = environment.reset()
    action = {"move": np.array([0, 1, 2]), "force": np.zeros((3, 2), np.float32)}
    for _ in range(12):
        assert array_spec.check_arrays_nest(time_step.observation, batched)
        walk = time_step.observation["walk"]
        np.testing.assert_array_equal(walk[:, 1], time_step.observation["rest"][0])
        np.testing.assert_array_equal(time_step.is_first(), walk[:, 1] == 0)
        np.testing.assert_array_equal(time_step.is_last(), walk[:, 1] == walk[:, 2])
        time_step = environment.step(action)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_load_gives_the_members_their_own_seeds(mode):
    with vector_py_environment.load("CartPole-v1", 2, mode) as environment:
        environment.seed(5)
        observation = environment.reset().observation
        assert environment.spec.id == "CartPole-v1"
    for member in range(2):
        single = suite_gym.load("CartPole-v1")
        single.seed(5 + member)
        np.testing.assert_array_equal(single.reset().observation, observation[member])


@pytest.mark.parametrize("mode", ["vector_entry_point", "sync"])
def test_load_sets_and_removes_the_time_limit(mode):
    limited = vector_py_environment.load("CartPole-v1", 2, mode, max_episode_steps=3)
    limited.reset()
    types = [limited.step(np.array([0, 1])).step_type[0] for _ in range(4)]
    assert types == [1, 1, 2, 0]
    free = vector_py_environment.load("CartPole-v1", 1, mode, max_episode_steps=0)
    free.reset()
    free.step(np.array([0]))


def test_load_applies_wrappers_and_arguments_to_each_member():
    environment = vector_py_environment.load(
        "Pendulum-v1",
        2,
        gym_env_wrappers=[
            lambda env: gymnasium.wrappers.TransformReward(env, lambda r: 7)
        ],
        gym_kwargs={"g": 2.0},
        discount=0.5,
    )
    environment.reset()
    time_step = environment.step(np.zeros((2, 1), np.float32))
    assert time_step.reward.tolist() == [7.0, 7.0]
    assert time_step.discount.tolist() == [0.5, 0.5]
    assert environment.gym.get_attr("g") == (2.0, 2.0)


@pytest.mark.parametrize("mode", ["vector_entry_point", "sync"])
def test_renders_all_members(mode):
    environment = vector_py_environment.load("CartPole-v1", 2, mode)
    environment.reset()
    assert environment.render().shape == (2, 400, 600, 3)
    with pytest.raises(ValueError, match="render: got mode 'human'"):
        environment.render("human")


def test_load_refuses_what_there_is_not():
    with pytest.raises(ValueError, match="did you mean CartPole-v1"):
        vector_py_environment.load("CartPole-v9", 2)
    with pytest.raises(ValueError, match=r"num_envs: .* got 0"):
        vector_py_environment.load("CartPole-v1", 0)
    with pytest.raises(ValueError, match=r"vectorization_mode: got 'threads'.*sync"):
        vector_py_environment.load("CartPole-v1", 2, "threads")


def test_load_ends_the_workers_of_a_mode_that_is_refused():
    with pytest.raises(ValueError, match=r"vector_env: got .*SAME_STEP") as refusal:
        vector_py_environment.load(
            "CartPole-v1",
            1,
            "async",
            vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        )
    # The traceback keeps the vector environment from being collected, and so closed.
    assert refusal.traceback
    workers = multiprocessing.active_children()
    assert not any(worker.name.startswith("Worker<Async") for worker in workers)


def test_actions_of_another_batch_are_refused():
    environment = VectorPyEnvironment(sync())
    environment.reset()
    with pytest.raises(ValueError, match=r"action: got shape \(2,\), expected \(3,\)"):
        environment.step(np.zeros(2, np.int64))


def test_integer_actions_of_another_dtype_are_cast():
    environment = vector_py_environment.load("CartPole-v1", 2)
    environment.reset()
    assert not environment.step(np.array([0, 1], np.int32)).is_first().any()


class InfiniteReward(Walk):
    lengths = (4, 4)

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, np.inf if action == 2 else 1.0, *rest


def test_an_infinite_reward_is_refused_with_the_members_index():
    environment = VectorPyEnvironment(SyncVectorEnv([InfiniteReward] * 2))
    environment.reset()
    with pytest.raises(
        ValueError,
        match=r"reward: got inf at index \[1\] from SyncVectorEnv of Inf",
    ):
        environment.step([0, 2])


def test_reset_in_mid_episode_restarts_every_member():
    environment = VectorPyEnvironment(sync())
    environment.reset()
    environment.step(np.zeros(3, np.int64))
    time_step = environment.reset()
    assert time_step.is_first().all()
    assert time_step.observation[:, 1].tolist() == [0.0, 0.0, 0.0]
    assert not environment.step(np.zeros(3, np.int64)).is_first().any()


def test_time_steps_are_not_changed_by_later_steps():
    environment = VectorPyEnvironment(sync(copy=False))
    first = environment.reset()
    before = first.observation.copy()
    environment.step(np.ones(3, np.int64))
    np.testing.assert_array_equal(first.observation, before)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_exception_of_a_worker_is_raised_with_its_message():
    with VectorPyEnvironment(async_(env=Failing, num_envs=2)) as environment:
        environment.reset()
        with pytest.raises(ValueError, match="the wheel came off"):
            environment.step(np.zeros(2, np.int64))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_worker_that_died_is_named_and_closing_still_works():
    vector_env = async_(env=Dying, num_envs=2)
    environment = VectorPyEnvironment(vector_env)
    environment.reset()
    with pytest.raises(RuntimeError, match=r"no answer from a worker.*exit codes"):
        environment.step(np.zeros(2, np.int64))
    environment.close()
    assert not any(process.is_alive() for process in vector_env.processes)


class Slow(Walk):
    """Takes a second for action 2."""

    lengths = (4, 4)

    def step(self, action):
        time.sleep(1.0 if action == 2 else 0.0)
        return super().step(action)


def _call_on_thread(function, seconds=20.0):
    """Returns the exception of a call that must end, without a hang of the test."""
    raised = []

    def call():
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive()
    return raised[0] if raised else None


@pytest.mark.parametrize(
    ("victim", "max_concurrency"),
    # The first waits for none, the last dies behind others, and with a limit it dies
    # with the semaphore that the others wait for.
    [(0, None), (2, None), (2, 1)],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_worker_killed_in_mid_step_is_an_error_and_does_not_hang(
    victim, max_concurrency
):
    limit = {} if max_concurrency is None else {"max_concurrency": max_concurrency}
    parameters = inspect.signature(AsyncVectorEnv).parameters
    if limit and "max_concurrency" not in parameters:
        pytest.skip("Gymnasium 1.3 steps all at once.")
    vector_env = async_(env=Slow, **limit)
    environment = VectorPyEnvironment(vector_env)
    environment.reset()
    action = np.zeros(3, np.int64)
    environment.step(action)
    action[victim] = 2
    pid = vector_env.processes[victim].pid
    kill = threading.Timer(0.5, os.kill, (pid, signal.SIGKILL))
    kill.start()
    error = _call_on_thread(lambda: environment.step(action))
    assert isinstance(error, child_errors.ChildDiedError)
    assert "no answer from a worker (exit codes [" in str(error)
    assert f"member {victim}: its process {pid} was killed by SIGKILL" in str(error)
    with pytest.raises(RuntimeError, match="vector_env: the environment is broken"):
        environment.step(action)
    assert _call_on_thread(environment.close) is None
    assert not any(process.is_alive() for process in vector_env.processes)


class Deaf(Walk):
    """Hangs at action 2, and hears no SIGTERM."""

    lengths = (4, 4)

    def step(self, action):
        if action == 2:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        return super().step(action)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_member_that_hangs_is_ended_at_the_time_limit():
    vector_env = async_(env=Deaf, num_envs=2)
    environment = VectorPyEnvironment(vector_env, step_timeout=10.0)
    environment.reset()
    environment.step(np.zeros(2, np.int64))
    error = _call_on_thread(lambda: environment.step(np.array([0, 2])), 60.0)
    assert isinstance(error, child_errors.ChildTimeoutError)
    assert "vector_env: a member: got no answer to step within 10 s" in str(error)
    assert "raise step_timeout" in str(error)
    with pytest.raises(RuntimeError, match="vector_env: the environment is broken"):
        environment.step(np.zeros(2, np.int64))
    environment.close()
    assert not any(process.is_alive() for process in vector_env.processes)


def test_a_time_limit_is_positive():
    with pytest.raises(ValueError, match=r"step_timeout: expected .*, got -1"):
        vector_py_environment.load("CartPole-v1", step_timeout=-1)


HANGS = """
import sys, threading, time
import cloudpickle, numpy as np
from tfrl.environments.gymnasium.vector_py_environment import VectorPyEnvironment
from gymnasium.vector import AsyncVectorEnv
make = cloudpickle.loads(bytes.fromhex(sys.argv[1]))
vector_env = AsyncVectorEnv([make, make], context=sys.argv[2])
environment = VectorPyEnvironment(vector_env)
environment.reset()
step = threading.Thread(target=environment.step, args=(np.array([0, 2]),), daemon=True)
step.start()
time.sleep(1)
print(*(process.pid for process in vector_env.processes), flush=True)
step.join()
"""


@pytest.mark.slow
@pytest.mark.parametrize("context", ["spawn", "forkserver"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_members_that_hang_end_with_their_parent(context, number):
    parent = subprocess.Popen(
        [sys.executable, "-c", HANGS, cloudpickle.dumps(Deaf).hex(), context],
        stdout=subprocess.PIPE,
    )
    pids = list(map(int, parent.stdout.readline().split()))
    assert len(pids) == 2
    os.kill(parent.pid, number)
    parent.communicate()
    for pid in pids:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and _is_running(pid):
            time.sleep(0.05)
        assert not _is_running(pid)


def _is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_closing_after_an_interrupted_step_does_not_hang():
    vector_env = async_(env=Slow)
    environment = VectorPyEnvironment(vector_env)
    environment.reset()

    def interrupted():
        vector_env.step_async([0, 0, 0])
        vector_env.parent_pipes[0].recv()
        raise KeyboardInterrupt

    vector_env.step = lambda actions: interrupted()
    with pytest.raises(KeyboardInterrupt):
        environment.step(np.zeros(3, np.int64))
    assert _call_on_thread(environment.close) is None
    assert not any(process.is_alive() for process in vector_env.processes)


def test_a_forgotten_environment_stops_its_watch():
    before = set(threading.enumerate())
    environment = VectorPyEnvironment(async_(num_envs=2))
    [watch] = set(threading.enumerate()) - before
    del environment
    gc.collect()
    watch.join(timeout=10.0)
    assert not watch.is_alive()


def test_closing_ends_the_workers():
    environment = vector_py_environment.load("CartPole-v1", 2, "async")
    processes = environment.gym.processes
    environment.reset()
    environment.close()
    environment.close()
    assert [process.exitcode for process in processes] == [0, 0]


_UNGUARDED_SCRIPT = """
import time
from tfrl.environments.gymnasium import vector_py_environment
print("started", flush=True)
environment = vector_py_environment.load("CartPole-v1", 2, "async")
environment.reset()
environment.step([0, 1])
print(*(process.pid for process in environment.gym.processes), flush=True)
time.sleep(60)
"""


def test_workers_need_no_main_guard_and_end_with_their_killed_parent(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(_UNGUARDED_SCRIPT)
    path = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **path},
    )
    assert parent.stdout.readline() == "started\n"
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(workers) == 2
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 5.0
    while any(map(_runs, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_runs, workers))


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_restored_state_goes_on_in_a_new_environment_with_its_info():
    def make():
        statistics = gymnasium.wrappers.RecordEpisodeStatistics
        return vector_py_environment.load(
            "CartPole-v1", 2, "sync", gym_env_wrappers=[statistics]
        )

    first, second = make(), make()
    first.seed(0)
    first.reset()
    while not any(first.step(np.array([1, 0])).is_last()):
        pass
    second.set_state(first.get_state())
    lengths = [env.get_info()["episode"]["l"].tolist() for env in (first, second)]
    assert lengths[0] == lengths[1]
    ours, theirs = (env.step(np.array([0, 1])) for env in (second, first))
    np.testing.assert_array_equal(ours.step_type, theirs.step_type)
    np.testing.assert_array_equal(ours.observation, theirs.observation)
