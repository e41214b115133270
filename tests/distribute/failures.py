"""What a run with actors loses if one of its processes fails, and for how long.

A role fails in one way at three moments: before it has handed anything on, while a
checkpoint is written, and shortly before the end of the run. Two actors in environments
whose frames are numbered, two replay servers, a learner and an evaluator run as on one
host; the calling process is the coordinator. A printed line gives the moment, whether
the others went on meanwhile, and the seconds until the role was back. At the end of a
run, the items in the servers' last checkpoints are counted: no frame may be there
twice. A frame may be missing only if a failed server had not saved or not confirmed it.
For a killed server, these are the frames after its checkpoint; for a stopped server,
the frames of the last two calls of its actors. One more frame may be missing when an
actor goes back to its server, and an actor may lose the frames of one call.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tree

from benchmarks import noting, processes

ROLES = ("actor", "shard", "learner", "evaluator", "coordinator")
FAULTS = ("SIGKILL", "SIGSTOP", "exception", "exit")
# The first process of a role, by its name in messages.
_MEMBERS = {
    "actor": "actor 0",
    "shard": "replay server 1",
    "learner": "the learner",
    "evaluator": "the evaluator",
}
_FOLDER = "TFRL_FAILURES"  # The environment variable of a run's folder.
_PATIENCE = 300.0  # Seconds for anything to happen.
_STOPPED = 20.0  # Seconds of a SIGSTOP.
_LENGTH = 1500  # Iterations of a run.
_PULL_PERIOD, _PUSH_PERIOD = 20, 10
_STEP = 0.005  # Seconds of a step, and of an update at least.
_NEAR_END = 40  # Iterations before the end, which wait for the last failure.
_SLOW = 3.0  # Seconds of such an iteration.
_MOST_LEFT = 5.0  # Seconds for which processes may outlive the run.


# The functions of the run's processes.


def _folder() -> pathlib.Path:
    return pathlib.Path(os.environ[_FOLDER])


class _Claim:
    """A file `ROLE-N` of this process, for the first free number, with its progress."""

    def __init__(self, role: str) -> None:
        for self.number in itertools.count():
            path = _folder() / f"{role}-{self.number}"
            with contextlib.suppress(FileExistsError):
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                break
        self.note(0)

    def note(self, progress: int) -> None:
        # Of one length, so that no reader finds a part of it.
        os.pwrite(self._file, f"{progress:12} {os.getpid():10}".encode(), 0)


def _fail_if_told(role: str) -> None:
    """Raises an exception or ends the process, if the driver has asked it to."""
    for fault in ("exception", "exit"):
        asked = _folder() / f"{os.getpid()}.{fault}"
        if asked.exists():
            asked.unlink()
            if fault == "exit":
                os._exit(0)
            raise RuntimeError(f"the {role}'s own error")


def _make_environment(seed: int) -> Any:
    from tfrl import environments
    from tfrl.environments import py_environment
    from tfrl.specs import array_spec
    from tfrl.trajectories import time_step as ts

    class Numbered(py_environment.PyEnvironment):
        """Observes the number of its process and the number of the frame."""

        _claim: _Claim | None = None
        _frames = 0

        def observation_spec(self) -> array_spec.ArraySpec:
            return array_spec.ArraySpec((2,), np.float32)

        def action_spec(self) -> array_spec.BoundedArraySpec:
            return array_spec.BoundedArraySpec((), np.int32, 0, 1)

        def _observe(self) -> np.ndarray:
            if self._claim is None:
                self._claim = _Claim("actor")
            frame = self._frames
            self._frames += 1
            self._claim.note(frame)
            return np.array([self._claim.number, frame], np.float32)

        def _reset(self) -> ts.TimeStep:
            return ts.restart(self._observe())

        def _step(self, action: Any) -> ts.TimeStep:
            time.sleep(_STEP)
            _fail_if_told("actor")
            observation = self._observe()
            if self._frames % 50 == 0:
                return ts.termination(observation, 1.0)
            return ts.transition(observation, 1.0)

    del seed
    return environments.TFPyEnvironment(Numbered())


def _make_agent(environment: Any) -> Any:
    import keras

    from tfrl import agents, networks

    specs = environment.time_step_spec(), environment.action_spec()
    net = networks.QNetwork(specs[0].observation, specs[1], fc_layer_params=(), seed=0)
    # The observations are large; the weights stay as they are.
    return agents.DqnAgent(*specs, net, keras.optimizers.SGD(0.0), seed=0)


def _make_table(name: str, signature: Any) -> Any:
    from tfrl import replay_service

    return replay_service.Table(
        name,
        sampler=replay_service.selectors.Uniform(),
        remover=replay_service.selectors.Fifo(),
        max_size=1_000_000,
        rate_limiter=replay_service.rate_limiters.MinSize(1),
        signature=signature,
    )


def _make_run_settings(agent: Any) -> dict[str, Any]:
    from tfrl import train
    from tfrl.eval import evaluate

    claim, hold = _Claim("learner"), _folder() / "hold"

    class Progress(train.Callback):
        interval = 1

        def on_interval(self, iteration: int) -> None:
            claim.note(iteration)
            _fail_if_told("learner")
            is_near_end = iteration > _LENGTH - _NEAR_END
            time.sleep(_SLOW if is_near_end and hold.exists() else _STEP)

    evaluated: list[_Claim] = []

    def evaluation(iteration: int) -> evaluate.EvaluationResult:
        if not evaluated:
            evaluated.append(_Claim("evaluator"))
        evaluated[0].note(iteration)
        _fail_if_told("evaluator")
        return evaluate.EvaluationResult(np.zeros(1, np.float32), np.ones(1, int))

    del agent
    return {
        "callbacks": [Progress()],
        "evaluate": evaluation,
        "eval_interval": 50,
        "log_interval": 50,
        "checkpoint_interval": 50,
    }


def _run(folder: pathlib.Path) -> None:
    """Is the calling process of the run, whose members are noted in the folder."""
    from tfrl import distribute, train

    experiment = distribute.Experiment(
        _make_environment,
        _make_agent,
        _make_table,
        sequence_length=2,
        stride_length=1,
        batch_size=8,
        push_period=_PUSH_PERIOD,
        pull_period=_PULL_PERIOD,
        make_run_settings=_make_run_settings,
        jit_compile=False,
    )

    def is_stopped() -> bool:
        _fail_if_told("coordinator")
        return False

    _Claim("coordinator")
    distribute.run_distributed(
        experiment,
        train.RunDirectory(folder / "run", {}),
        num_actors=2,
        num_iterations=_LENGTH,
        num_shards=2,
        evaluator=True,
        launcher=noting.NotingLauncher(folder, distribute.LocalLauncher()),
        is_stopped=is_stopped,
    )


# The functions of the driver.


class Watched:
    """A run in a process of its own, some of whose processes the driver makes fail."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Starts the run in a folder."""
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Starts the run, or starts it again."""
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.distribute.failures", str(self.folder)],
                cwd=processes.ROOT,
                env={**os.environ, _FOLDER: str(self.folder)},
                stdout=output,
                stderr=output,
            )

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The calling process of the run."""
        assert self._process is not None
        return self._process

    def pid(self, role: str) -> int:
        """Returns the process id of a role's first process; 0 before its start."""
        if role == "coordinator":
            return self.process.pid
        found = noting.noted(self.folder, _MEMBERS[role])
        return found[0] if found else 0

    def progress(self, role: str) -> tuple[int, int]:
        """Returns which process of a role its first one is now, and how far it came.

        The first number counts the processes that the role has had; -1 if this one has
        not begun.
        """
        pid, found = self.pid(role), (-1, 0)
        for path in self.folder.glob(f"{role}-*"):
            noted = path.read_text().split()
            if noted and int(noted[1]) == pid:
                found = max(found, (int(path.name.rpartition("-")[2]), int(noted[0])))
        return found

    def iteration(self) -> int:
        """Returns the learner's iteration."""
        return self.progress("learner")[1]

    def frames(self) -> int:
        """Returns how many frames all actors have made so far."""
        noted = (path.read_text().split() for path in self.folder.glob("actor-*"))
        return sum(int(words[0]) for words in noted if words)

    def frames_of(self) -> dict[int, int]:
        """Returns how many frames each actor has made so far."""
        noted = {path: path.read_text().split() for path in self.folder.glob("actor-*")}
        return {int(path.name[6:]): int(n[0]) for path, n in noted.items() if n}

    def frames_saved(self) -> np.ndarray:
        """Returns the frames in the newest checkpoint of the role `shard`.

        Call this before a server goes on with that checkpoint.
        """
        from tfrl.replay_service.engine.checkpoints import checkpoint_files

        with tempfile.TemporaryDirectory() as name:
            kept = pathlib.Path(name) / "run" / "replay_server" / "shard_1"
            found = checkpoint_files.latest(self.folder / kept.relative_to(name))
            if found is None:
                return np.empty((0, 2), int)
            shutil.copytree(found, kept / pathlib.Path(found).name)
            return np.concatenate(frames_written(pathlib.Path(name)))

    def client(self) -> Any:
        """Returns a client of the role `shard`."""
        from tfrl import replay_service

        found = noting.noted(self.folder, _MEMBERS["shard"])
        assert found is not None
        return replay_service.Client(f"localhost:{found[1]}", timeout=1.0)

    def until(self, what: str, condition: Callable[[], bool]) -> float:
        """Waits for something, and returns the seconds that it took."""
        start = time.monotonic()
        while not condition():
            if time.monotonic() - start > _PATIENCE:
                text = (self.folder / "output").read_text()[-2000:]
                raise AssertionError(f"no {what} in {_PATIENCE:g} s; output:\n{text}")
            time.sleep(0.001)
        return time.monotonic() - start


def frames_written(folder: pathlib.Path) -> list[np.ndarray]:
    """Returns the items in the last checkpoint of each server, by their first frames.

    Args:
      folder: The folder of the run.

    Returns:
      For each server, the numbers of the actor and of the frame, int `[number of items,
      2]`.
    """
    from tfrl import replay_service
    from tfrl.replay_service.engine.checkpoints import checkpoint_files

    found = []
    run = folder / "run" / "replay_server"
    for path in sorted({done.parent.parent for done in run.rglob("DONE")}):
        newest = checkpoint_files.latest(path)
        assert newest is not None
        meta = checkpoint_files.read_meta(newest)
        server = replay_service.Server(
            [
                replay_service.Table.from_config(one["options"])
                for one in meta["tables"]
            ],
            None,
            replay_service.checkpointers.DefaultCheckpointer(path),
        )
        found.append(_drain(server.localhost_client()))
        server.stop()
    return found


def _drain(client: Any) -> np.ndarray:
    """Samples and deletes all items of a table."""
    rows = []
    while client.server_info()["experience"].current_size:
        sample = client.sample_batch("experience", 2000)
        keys, first = np.unique(sample.info.key, return_index=True)
        leaves = map(np.asarray, tree.flatten(sample.data))
        (observations,) = (leaf for leaf in leaves if leaf.shape[1:] == (2, 2))
        rows.append(observations[first, 0])
        client.mutate_priorities("experience", deletes=keys.tolist())
    return np.concatenate([np.empty((0, 2)), *rows]).astype(int)


@dataclasses.dataclass
class Audit:
    """The frames that the servers hold at the end, compared one by one.

    Attributes:
      doubled: The number of frames that are there twice or more often.
      missing: The number of missing frames between the first and the last frame of an
        actor.
      unexplained: The number of missing frames that no failure of a server explains.
      lost: The most frames at the end of an actor's life that are missing.
    """

    doubled: int
    missing: int
    unexplained: int
    lost: int

    def __str__(self) -> str:
        return (
            f"{self.doubled} frames twice, {self.missing} missing, {self.unexplained} "
            f"of them for no reason, at most {self.lost} lost with an actor"
        )


# For each actor, the frames that a failure of its server may lose: `low <= f < high`.
Losses = dict[int, tuple[int, int]]


def audit(
    folder: pathlib.Path, killed: Sequence[int], losses: Sequence[Losses] = ()
) -> Audit:
    """Counts the frames in the servers' last checkpoints.

    Args:
      folder: The folder of the run.
      killed: The numbers of the actors that were killed.
      losses: The frames that each failure of a server may have lost.
    """
    frames = np.concatenate(frames_written(folder))
    _, counts = np.unique(frames, axis=0, return_counts=True)
    missing, unexplained, lost = 0, 0, 0
    for number in map(int, np.unique(frames[:, 0])):
        own = frames[frames[:, 0] == number, 1]
        absent = np.setdiff1d(np.arange(int(own.max()) + 1), own)
        missing += len(absent)
        own_losses = [loss[number] for loss in losses if number in loss]
        for low, high in own_losses:
            absent = absent[(absent < low) | (absent >= high)]
        # No item lies across two servers, so an actor's way home costs one, later.
        unexplained += max(0, len(absent) - len(own_losses))
        if number in killed:
            made = int((folder / f"actor-{number}").read_text().split()[0])
            lost = max(lost, made - int(own.max()))
    return Audit(int(np.sum(counts > 1)), missing, unexplained, lost)


def run_case(role: str, fault: str, folder: pathlib.Path) -> None:
    """Makes a role fail at each moment of one run, and checks the outcome."""
    run = Watched(folder)
    try:
        _Case(run, role, fault).play()
    finally:
        noting.kill([run.process.pid, *noting.descendants(run.process.pid)])
        run.process.wait()


class _Case:
    """A run in which one role fails in one way, at each moment."""

    def __init__(self, run: Watched, role: str, fault: str) -> None:
        self._run = run
        self._role = role
        self._fault = fault
        self._killed: list[int] = []
        self._losses: list[Losses] = []

    def play(self) -> None:
        """Plays the moments in turn, and counts the frames at the end."""
        run, role = self._run, self._role
        (run.folder / "hold").touch()
        begun = run.pid if role == "shard" else lambda role: run.progress(role)[0] + 1
        run.until("start", lambda: begun(role) > 0)
        self._at("first")
        self._wait_for_checkpoint()
        self._at("checkpoint")
        run.until("end", lambda: run.iteration() > _LENGTH - _NEAR_END)
        self._at("end")
        (run.folder / "hold").unlink()
        run.until("finish", lambda: run.process.poll() is not None)
        assert run.process.returncode == 0
        found = audit(run.folder, self._killed, self._losses)
        print(f"{role:<12}{self._fault:<10}{found}")
        assert not found.doubled, found
        assert not found.unexplained, found
        # An actor loses one call; of the last frame no item can begin.
        assert role != "actor" or found.lost <= _PULL_PERIOD + 1, found

    @property
    def _ends_run(self) -> bool:
        """Whether the run ends, and is started again."""
        ends_caller = self._role == "coordinator" and self._fault != "SIGSTOP"
        return ends_caller or self._fault == "exception"

    def _wait_for_checkpoint(self) -> None:
        """Waits until the learner, or the servers, have begun to write one."""
        folder = "replay_server" if self._role == "shard" else "checkpoints"
        path = self._run.folder / "run" / folder
        self._run.until("folder of checkpoints", path.exists)
        before = set(path.rglob("*"))
        self._run.until("checkpoint", lambda: bool(set(path.rglob("*")) - before))

    def _at(self, moment: str) -> None:
        """Makes the role fail, and measures how long it is away."""
        run, role = self._run, self._role
        pid, before = run.pid(role), run.progress(role)
        iteration, frames = run.iteration(), run.frames()
        learner = run.pid("learner")
        others = noting.descendants(run.process.pid)
        start = time.monotonic()
        self._fail(pid)
        kept = self._least_kept() if role == "shard" else {}
        if self._ends_run:
            run.until("end of the run", lambda: run.process.poll() is not None)
            left = run.until("end of the others", lambda: not noting.running(others))
            assert left <= _MOST_LEFT, f"processes were left over for {left:.1f} s"
            run.start()
        elif self._fault == "SIGSTOP":
            time.sleep(_STOPPED)
            os.kill(pid, signal.SIGCONT)
            start += _STOPPED
        run.until("return", lambda: self._is_back(pid, before, learner, iteration))
        seconds = time.monotonic() - start
        made = run.frames_of()
        self._losses.append({n: (low, made[n]) for n, low in kept.items()})
        if self._ends_run:
            went_on = f"end within {left:.1f} s"
        elif (
            run.frames() > frames if role == "learner" else run.iteration() > iteration
        ):
            went_on = "go on"
        else:
            went_on = "wait"
        print(f"{role:<12}{self._fault:<10}{moment:<12}{went_on:<22}{seconds:6.1f} s")

    def _least_kept(self) -> dict[int, int]:
        """Returns, by actor, up to which frame the failed server has kept all."""
        made = self._run.frames_of()
        if self._fault == "SIGSTOP":
            return {n: frames - 2 * _PULL_PERIOD for n, frames in made.items()}
        saved = self._run.frames_saved()
        # An actor without a frame there writes to the other server, or has just begun.
        return {
            n: int(max(saved[saved[:, 0] == n, 1], default=-1)) + 1
            for n in made
            if not len(saved) or n in saved[:, 0]
        }

    def _fail(self, pid: int) -> None:
        """Makes the process of the role fail."""
        run, role = self._run, self._role
        if role == "actor" and self._fault != "SIGSTOP":
            self._killed.append(run.progress(role)[0])
        elif self._ends_run:
            self._killed += [int(path.name[6:]) for path in run.folder.glob("actor-*")]
        if self._fault.startswith("SIG"):
            os.kill(pid, getattr(signal, self._fault))
        elif role == "shard":
            os.kill(pid, signal.SIGTERM)
        else:
            (run.folder / f"{pid}.{self._fault}").touch()
            if self._fault == "exit" and role != "coordinator":
                run.until("obedience", lambda: not noting.running([pid]))

    def _is_back(
        self, pid: int, before: tuple[int, int], learner: int, iteration: int
    ) -> bool:
        """Whether the role's process, the same one or a new one, has done its work."""
        run, role = self._run, self._role
        is_new = self._fault != "SIGSTOP"
        if role == "shard":
            if is_new and run.pid(role) == pid:
                return False
            try:
                run.client().server_info()
            except Exception:  # It does not answer yet.
                return False
            return True
        if role == "coordinator":
            # The learner is one of the processes that it starts.
            if is_new and run.pid("learner") == learner:
                return False
            return run.iteration() > (0 if is_new else iteration)
        if is_new and run.pid(role) == pid:
            return False
        return run.progress(role)[1] > (_PULL_PERIOD if is_new else before[1])


if __name__ == "__main__":
    _run(pathlib.Path(sys.argv[1]))
