"""Compares the ways to a replay server: Unix socket, TCP and TLS.

    python -m benchmarks.service_network --tls_certificate=chain.pem --tls_key=key.pem

Server and client are processes of this host, so the figures are without a network's own
delay and limit. For each task and each way, it prints the time, the client's processor
time and the server's, in microseconds for an operation: medians of `--rounds`, in which
the ways take turns. No memory is shared. Small items are two steps of CartPole, stacks
are two steps of 84x84x4 bytes. Without the two files, TLS is left out; the certificate
has to be valid for "localhost" and its own root. It needs Linux.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks import check_command
from tfrl import replay_service as reverb
from tfrl.replay_service import server_settings
from tfrl.replay_service.sampling.sampler import SampleStream
from tfrl.replay_service.transport import connection

_BATCH = 64
_AHEAD = 512  # Samples.
_FILL = 200  # Stacks.
_STACK = (84, 84, 4)

Times = tuple[float, float, float]  # Seconds: all, of the client, of the server.
Task = Callable[[int], None]


class Way:
    """A server and a client that reaches it in one way."""

    def __init__(
        self, name: str, transport: str, pair: tuple[bytes, bytes] | None = None
    ) -> None:
        """Starts the server.

        Args:
          name: The name to print.
          transport: "unix" or "tcp".
          pair: The certificate chain and the private key for TLS, or None.
        """
        self.name = name
        self._transport = transport
        self._server = reverb.Server(
            [_table("small", 10_000), _table("stacks", _FILL), _table("weights", 1)],
            tls=pair,
        )
        self._roots = None if pair is None else pair[0]
        self._frames = np.random.default_rng(0).integers(
            0, 256, (64, *_STACK), np.uint8
        )
        with self._chosen():
            self._client = self._server.localhost_client()
            self._write_stacks(_FILL)
            stream = SampleStream(
                self._client.server_address,
                "stacks",
                max_in_flight=_AHEAD,
                tls_root_certificates=self._roots,
                reuse_memory=True,
            )
            stream.next_batch(_AHEAD)
        self._stream = stream

    def tasks(self) -> Iterator[tuple[str, Task, int]]:
        """Yields the name of each task, its function, and the number of its calls."""
        weights = {
            size: np.random.default_rng(0).integers(0, 256, size << 20, np.uint8)
            for size in (1, 10)
        }
        yield "round trip", self._ask, 200
        yield "connection", self._connect, 20
        yield "write small items, a flush every 16", self._write_small, 1600
        yield "write stacks, a flush every 16", self._write_stacks, 320
        yield "sample stacks, batches of 64", self._sample, 3200
        for size, data in weights.items():
            yield f"push {size} MB", functools.partial(self._push, data=data), 4
            yield f"pull {size} MB", self._pull, 8

    def measure(self, task: Task, count: int) -> Times:
        """Returns the times of one operation."""
        with self._chosen():
            before = self._clocks()
            task(count)
            after = self._clocks()
        every = [
            (end - start) / count for start, end in zip(before, after, strict=True)
        ]
        return every[0], every[1], every[2]

    def close(self) -> None:
        """Stops the server."""
        self._stream.close()
        self._server.stop()

    def _clocks(self) -> Times:
        threads = pathlib.Path(f"/proc/{self._server.pid}/task").glob("*/schedstat")
        server = sum(int(path.read_text().split()[0]) for path in threads) / 1e9
        return time.perf_counter(), time.process_time(), server

    @contextlib.contextmanager
    def _chosen(self) -> Iterator[None]:
        before = os.environ.get(connection.TRANSPORT_VARIABLE)
        os.environ[connection.TRANSPORT_VARIABLE] = self._transport
        try:
            yield
        finally:
            del os.environ[connection.TRANSPORT_VARIABLE]
            if before is not None:
                os.environ[connection.TRANSPORT_VARIABLE] = before

    def _ask(self, count: int) -> None:
        for _ in range(count):
            self._client.server_info()

    def _connect(self, count: int) -> None:
        for _ in range(count):
            self._server.localhost_client().server_info()

    def _write_small(self, count: int) -> None:
        step = {"observation": np.zeros(4, np.float32), "action": np.int64(1)}
        self._write("small", [{**step, "reward": np.float32(1)}], count)

    def _write_stacks(self, count: int) -> None:
        self._write("stacks", [{"frame": frame} for frame in self._frames], count)

    def _write(self, table: str, steps: Sequence[dict], count: int) -> None:
        with self._client.trajectory_writer(2) as writer:
            writer.append(steps[0])
            for i in range(1, count + 1):
                writer.append(steps[i % len(steps)])
                item = {name: column[-2:] for name, column in writer.history.items()}
                writer.create_item(table, 1.0, item)
                if i % 16 == 0:
                    writer.flush()

    def _sample(self, count: int) -> None:
        for _ in range(count // _BATCH):
            self._stream.next_batch(_BATCH)

    def _push(self, count: int, data: np.ndarray) -> None:
        for _ in range(count):
            self._client.insert(data, {"weights": 1.0})

    def _pull(self, count: int) -> None:
        for _ in range(count):
            list(self._client.sample("weights", 1, emit_timesteps=False))


def _table(name: str, size: int) -> reverb.Table:
    return reverb.Table(
        name,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=size,
        rate_limiter=reverb.rate_limiters.MinSize(1),
    )


def compare(
    ways: Sequence[Way],
    rounds: int,
    share: float = 1.0,
    say: Callable[[str], None] = lambda _: None,
) -> dict[tuple[str, str], Times]:
    """Measures all tasks in all ways.

    Args:
      ways: The ways.
      rounds: The number of measurements of each.
      share: The share of each task that is done.
      say: Called with a line for each task.

    Returns:
      The medians, by the names of the task and of the way.
    """
    found: dict[tuple[str, str], Times] = {}
    for tasks in zip(*(way.tasks() for way in ways), strict=True):
        every: dict[str, list[Times]] = {way.name: [] for way in ways}
        for _ in range(rounds):
            for way, (_, task, count) in zip(ways, tasks, strict=True):
                most = max(int(count * share), 1)
                every[way.name].append(way.measure(task, most))
        title = tasks[0][0]
        line = f"{title:36}"
        for name, times in every.items():
            first, second, third = map(statistics.median, zip(*times, strict=True))
            found[title, name] = first, second, third
            line += f"{1e6 * first:12,.0f}{1e6 * second:9,.0f}{1e6 * third:9,.0f}"
        say(line)
    return found


def _tls_pair(certificate: str | None, key: str | None) -> tuple[bytes, bytes] | None:
    """Returns the certificate chain and the private key in files, or None."""
    texts = server_settings.read_tls(certificate, key)
    return None if texts is None else (texts[0].encode(), texts[1].encode())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison; returns the exit status."""
    parser = check_command.parser("service_network", __doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tls_certificate")
    parser.add_argument("--tls_key")
    options = parser.parse_args(arguments)
    pair = _tls_pair(options.tls_certificate, options.tls_key)
    with contextlib.ExitStack() as stack:
        ways = [Way("Unix socket", "unix"), Way("TCP", "tcp")]
        if pair is not None:
            ways.append(Way("TLS", "tcp", pair))
        for way in ways:
            stack.callback(way.close)
        print(f"load {os.getloadavg()[0]:.1f}; microseconds: all, client, server")
        print(" " * 36 + "".join(f"{way.name:>30}" for way in ways))
        compare(ways, options.rounds, say=print)
        print(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
