"""`RayLauncher`: a run whose processes Ray places on the nodes of a cluster."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tfrl.distribute.coordination import remote_process
from tfrl.distribute.coordination.coordinator import Coordinator
from tfrl.distribute.experiment import Experiment
from tfrl.distribute.launch import ray_actor
from tfrl.distribute.launch.plan import Plan, draw_token
from tfrl.distribute.process_roles import REPLAY, ROLES, Task
from tfrl.replay_service.transport import addresses, tls
from tfrl.system import child_process, log, supervisor

_TLS = (tls.CERTIFICATE_VARIABLE, tls.KEY_VARIABLE)


class RayLauncher:
    """Runs each process of a run as an actor of Ray, which chooses its node.

    The supervisor restarts processes that have died, even if their node died, wherever
    Ray finds room. All nodes need tfrl and the modules of the experiment, and the run's
    directory at the same path. They also need the files of TLS at the paths that the
    environment of the calling process names.

    Whether Ray's own ports require a token depends on its version and on RAY_AUTH_MODE.
    Without a token, anyone who can reach these ports can run programs.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        resources: Mapping[str, Mapping[str, Any]] | None = None,
        patience: float = 300.0,
        silence: float = 30.0,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """Stores the settings.

        Args:
          address: The cluster, as for `ray.init`: "auto" or "host:port". None uses the
            cluster that this process has joined, or else starts Ray on this host.
          resources: The resources that Ray reserves for a process of each role,
            "replay", "actor", "evaluator" and "learner", as the `options` of an actor
            of Ray, such as `{"learner": {"num_gpus": 1}}`; one CPU by default.
          patience: The number of seconds within which Ray has to place and start a
            process.
          silence: The number of seconds without a message after which a process counts
            as dead.
          say: Takes a line for each process that appears; `log.info` if None.

        Raises:
          ImportError: Ray is not installed.
          ValueError: `resources` names another role, or a number of seconds is not
            positive.
        """
        _import_ray()
        unknown = set(resources or {}) - set(ROLES)
        if unknown:
            raise ValueError(
                f"resources: got the roles {sorted(unknown)}, expected some of "
                f"{list(ROLES)}; leave the others out."
            )
        self._address = address
        self._resources = dict(resources or {})
        self._watch = remote_process.Watch(patience, silence, say or log.info)

    @contextlib.contextmanager
    def launch(self, plan: Plan) -> Iterator[list[supervisor.Member]]:
        """Joins or starts Ray, and starts the coordinator; see `Launcher`."""
        token = draw_token()
        with _joined(self._address, len(plan.tasks)) as ray:
            host = ray.util.get_node_ip_address()
            coordinator = Coordinator(
                {"settings": {}, **plan.shared_settings}, host=host, token=token
            )
            start = functools.partial(
                self._start, coordinator, plan.experiment, host, token
            )
            yield [
                coordinator.member,
                *(
                    supervisor.Member(task.title, functools.partial(start, task))
                    for task in plan.tasks
                ),
            ]

    def _start(
        self,
        coordinator: Coordinator,
        experiment: Experiment,
        host: str,
        token: str,
        task: Task,
        starts: int,
    ) -> supervisor.Process:
        del starts  # The coordinator counts the processes of a task.
        options = {"num_cpus": 1, **self._resources.get(task.role, {})}
        ray = _import_ray()
        actor = ray.remote(ray_actor.RayActor).options(**options).remote()
        running = actor.work.remote(
            task,
            addresses.join(host, coordinator.port),
            None if task.role == REPLAY else experiment,
            token,
            {name: os.environ[name] for name in _TLS if name in os.environ},
        )
        return _RayProcess(
            actor,
            running,
            options,
            coordinator,
            task,
            self._watch,
        )


class _RayProcess(remote_process.RemoteProcess):
    """A worker that Ray has placed, or is to place."""

    def __init__(
        self,
        actor: Any,
        running: Any,
        options: Mapping[str, Any],
        *rest: Any,
        **kw: Any,
    ) -> None:
        super().__init__(*rest, **kw)
        self._actor = actor
        self._running = running
        self._options = options

    def poll(self) -> child_process.Ending | None:
        """Returns how the worker has ended; None while it runs, or waits for its place.

        Raises:
          TimeoutError: Ray has not placed it in time.
        """
        how = self._death()
        if how is not None:
            # The worker's own message at its end is more precise.
            self._coordinator.update(at_once=True)
        try:
            ending = super().poll()
        except TimeoutError as error:
            ray = _import_ray()
            raise TimeoutError(
                f"{error} It asks Ray for {self._options}; the nodes have "
                f"{ray.cluster_resources()}, and {ray.available_resources()} are free."
            ) from None
        if ending is None and how is not None:
            ending = self._ended(child_process.Ending(how))
        return ending

    def stop(self, grace: float) -> None:
        """Asks the worker to stop, and kills it if it has not ended in time."""
        super().stop(grace)
        _import_ray().kill(self._actor)

    def _death(self) -> str | None:
        """Returns how Ray's actor has ended; None while it runs."""
        ray = _import_ray()
        ready, _ = ray.wait([self._running], timeout=0)
        if not ready:
            return None
        try:
            return f"exited with code {ray.get(self._running)}"
        except ray.exceptions.RayError as error:
            return f"ended: {str(error).splitlines()[0]}"


@contextlib.contextmanager
def _joined(address: str | None, num_processes: int) -> Iterator[Any]:
    """Joins or starts Ray, unless this process has done so, and leaves it again."""
    ray = _import_ray()
    if ray.is_initialized():
        yield ray
        return
    if address is None:
        # The processes share the cores of this host, however few it has.
        num_cpus = max(os.cpu_count() or 1, num_processes)
        ray.init(address="local", num_cpus=num_cpus, include_dashboard=False)
    else:
        ray.init(address=address)
    try:
        yield ray
    finally:
        ray.shutdown()


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "RayLauncher needs Ray, which is not installed: pip install 'tfrl[ray]'; "
            "or leave the launcher out, to run on this host."
        ) from error
    return ray
