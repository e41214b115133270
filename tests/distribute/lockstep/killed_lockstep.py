"""A run in lockstep whose processes are killed at the moments that its caller names.

The moments are the names of files in the directory of the environment variable KILLS;
each happens once. All of them are known by the number of the round, so they are the
same ones in every run.
"""

import dataclasses
import os
import pathlib
import signal
import time

from tests.distribute import small_impala
from tfrl import distribute, train
from tfrl.distribute import replay_servers
from tfrl.distribute.lockstep import lockstep_roles
from tfrl.distribute.roles import actor

NUM_ROUNDS, CHECKPOINT_INTERVAL = 24, 5
KILLS = "TFRL_TEST_KILLS"
SERVER = "server.pid"
# The process that is killed, and the round; the caller dies when the actors have sent
# their states for a checkpoint that the learner has not written.
MOMENTS = ("actor-1", "actor-7", "learner-13", "server-17", "caller-20")


def _directory():
    return pathlib.Path(os.environ[KILLS])


def _kill(process, round_, pid):
    """Kills a process if it is to be killed in this round, once."""
    try:
        (_directory() / f"{process}-{round_}").unlink()
    except FileNotFoundError:
        return
    os.kill(pid, signal.SIGKILL)
    time.sleep(5.0)  # What follows shall not happen.


def _make_environment(seed):
    """Makes an environment; kills actor 0 after the steps of a round."""
    environment = small_impala.make_environment(seed)
    if seed == actor.seed_of(small_impala.IMPALA, 0, 0):
        plain = train.ActorLoop.collect_rollout

        def collect_and_kill(loop, num_steps):
            rollout = plain(loop, num_steps)
            _kill("actor", loop.iteration // num_steps, os.getpid())
            return rollout

        train.ActorLoop.collect_rollout = collect_and_kill
    return environment


def _make_run_settings(agent):
    """Returns the learner's settings; kills processes at its moments."""
    collect = lockstep_roles.Actors.collect
    serialize = lockstep_roles.Actors.serialize

    def collect_and_kill(actors):
        rollouts = collect(actors)
        round_ = int(agent.train_step_counter) + 1
        _kill("learner", round_, os.getpid())
        _kill("server", round_, int((_directory() / SERVER).read_text()))
        return rollouts

    def serialize_and_kill(actors):
        states = serialize(actors)
        _kill("caller", int(agent.train_step_counter), os.getppid())
        return states

    lockstep_roles.Actors.collect = collect_and_kill
    lockstep_roles.Actors.serialize = serialize_and_kill
    return {"checkpoint_interval": CHECKPOINT_INTERVAL, "log_interval": 1}


EXPERIMENT = dataclasses.replace(
    small_impala.IMPALA,
    make_environment=_make_environment,
    make_run_settings=_make_run_settings,
    jit_compile=True,
)


def main(path):
    """Runs it to the end, unless it is killed."""
    make_server = replay_servers.make_server

    def make_and_tell(*arguments, **keywords):
        server = make_server(*arguments, **keywords)
        (_directory() / SERVER).write_text(str(server.pid))
        return server

    replay_servers.make_server = make_and_tell
    distribute.run_distributed(
        EXPERIMENT,
        train.RunDirectory(path, {"num_iterations": NUM_ROUNDS}),
        num_actors=2,
        num_iterations=NUM_ROUNDS,
        schedule="lockstep",
    )
