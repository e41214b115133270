"""A run on this host, whose processes a test kills."""

import os
import signal
import threading
import time

from tfrl import distribute, replay_service, train
from tfrl.distribute import replay_servers
from tfrl.system import child_process

PATIENCE = 240.0
SERVER, LEARNER = "the replay server", "the learner"
# The names of several servers, by their directories.
SERVERS = {"shard_0": SERVER, "shard_1": "replay server 1"}


class Watched:
    """A run in a thread, whose processes the test kills."""

    def __init__(self, experiment, directory, monkeypatch, **settings):
        self.said, self.processes = [], {}
        self._is_stopped = threading.Event()
        self._error, self.result = None, None
        start = child_process.FunctionProcess.__init__
        start_server = replay_servers.make_server

        def remember(process, function, name):
            start(process, function, name)
            self.processes[name] = process

        def remember_server(tables, directory, *arguments, token):
            server = start_server(tables, directory, *arguments, token=token)
            self.token = token
            self.processes[SERVERS.get(directory.name, SERVER)] = server
            return server

        monkeypatch.setattr(child_process.FunctionProcess, "__init__", remember)
        monkeypatch.setattr(replay_servers, "make_server", remember_server)
        self._thread = threading.Thread(
            target=self._run, args=(experiment, directory, settings)
        )
        self._thread.start()
        self.until(lambda: SERVER in self.processes)
        self.client = self.client_of(SERVER)

    def _run(self, experiment, directory, settings):
        try:
            self.result = distribute.run_distributed(
                experiment,
                train.RunDirectory(directory, {}),
                is_stopped=self._is_stopped.is_set,
                say=self.said.append,
                **{"num_actors": 2, "num_iterations": 10**9, **settings},
            )
        except BaseException as error:
            self._error = error

    def client_of(self, name):
        """A client of a server of the run, which knows its token."""
        port = self.processes[name].port
        return replay_service.Client(f"localhost:{port}", token=self.token)

    def until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self._error is None, self._error
            assert time.monotonic() < deadline, self.said
            time.sleep(0.05)

    def step(self):
        """The train step of the newest weights; -1 if there are none."""
        if not self.client.server_info()["variables"].current_size:
            return -1
        [sample] = self.client.sample("variables", 1, emit_timesteps=False)
        return int(sample.data[-1][0])

    def kill(self, name, number=signal.SIGKILL):
        """Kills a process; waits until it was started again, and for updates.

        Returns how far the weights went back meanwhile.
        """
        old, before = self.processes[name], self.step()
        os.kill(old.pid, number)
        self.until(lambda: self.processes[name] is not old)
        steps = [self.step()]
        self.until(lambda: steps.append(self.step()) or steps[-1] >= steps[0] + 4)
        return before - min(steps)

    def stop(self):
        self._is_stopped.set()
        self.join()

    def join(self):
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        assert self._error is None
