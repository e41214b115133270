"""Shows where the time of an iteration goes, by TensorFlow's profiler.

    python -m benchmarks.profile [--loop=compiled|native|plain] [--top=25]

The loop is `benchmarks.dqn`'s with one environment: "compiled" is compiled by XLA
and steps Gymnasium's CartPole, "native" is compiled and steps tfrl's, "plain" is not
compiled. The rows of a compiled program are XLA's fusions (named after one of their
operations), and the rows of a plain graph are its operations; both include the calls of
Python. Times include nested calls and the profiler's own cost, which is about as large
as the smallest times.
"""

from __future__ import annotations

import collections
import pathlib
import tempfile

import tensorflow as tf
from absl import app, flags

from benchmarks.workers import with_tfrl

_LOOP = flags.DEFINE_enum("loop", "compiled", ["compiled", "native", "plain"], "Loop.")
_TOP = flags.DEFINE_integer("top", 25, "How many rows to print.")
_ITERATIONS = 300


def profile(loop: str, iterations: int) -> list[tuple[str, float, float]]:
    """Returns (name, microseconds, calls) per iteration, the longest time first."""
    if loop == "native":
        task = with_tfrl.compiled(envs=1, capacity=100_000)
    else:
        task = with_tfrl.dqn(envs=1, sampling="variables", jit_compile=loop != "plain")
    task.run(iterations)
    with tempfile.TemporaryDirectory() as folder:
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3)
        tf.profiler.experimental.start(folder, options)
        task.run(iterations)
        tf.profiler.experimental.stop()
        (trace,) = pathlib.Path(folder).rglob("*.xplane.pb")
        return _sums(trace.read_bytes(), iterations)


def _sums(trace: bytes, iterations: int) -> list[tuple[str, float, float]]:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    seconds: collections.Counter[str] = collections.Counter()
    calls: collections.Counter[str] = collections.Counter()
    for plane in xplane_pb2.XSpace.FromString(trace).planes:
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                seconds[name] += event.duration_ps / 1e12
                calls[name] += 1
    return [
        (name, 1e6 * total / iterations, calls[name] / iterations)
        for name, total in seconds.most_common()
    ]


def main(_: list[str]) -> None:
    """Prints the operations that take the most time in an iteration."""
    print(f"{'microseconds':>12s} {'calls':>7s}  an iteration")
    for name, microseconds, calls in profile(_LOOP.value, _ITERATIONS)[: _TOP.value]:
        print(f"{microseconds:12.2f} {calls:7.2f}  {name[:90]}")


if __name__ == "__main__":
    app.run(main)
