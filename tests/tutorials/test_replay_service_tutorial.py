"""What the demo of Reverb does, with the server and the sampler in two processes."""

import pytest
import tensorflow as tf

from tfrl import replay_service as reverb

_OBSERVATION = tf.TensorSpec([10, 10], tf.uint8)
_ACTION = tf.TensorSpec([2], tf.float32)

_SAMPLER = """
import sys
from tfrl import replay_service as reverb

dataset = reverb.TrajectoryDataset.from_table_signature(
    server_address=f"localhost:{sys.argv[1]}",
    table="my_table",
    max_in_flight_samples_per_worker=10,
)
batched = dataset.batch(2)
print(batched.element_spec.data["observations"].shape)
for sample in batched.take(2):
    for tensor in (
        sample.info.key,
        sample.info.probability,
        sample.data["observations"],
        sample.data["actions"],
    ):
        print(tensor.shape, tensor.dtype.name)
    print(set(sample.info.probability.numpy().tolist()))
"""


def _act():
    return tf.cast(tf.random.uniform(_ACTION.shape) > 0.5, _ACTION.dtype)


def _observe():
    pixels = tf.random.uniform(_OBSERVATION.shape, maxval=256)
    return tf.cast(pixels, _OBSERVATION.dtype)


def _write(client, num_keep_alive_refs):
    """Writes four steps, and two overlapping trajectories of three."""
    with client.trajectory_writer(num_keep_alive_refs=num_keep_alive_refs) as writer:
        for step in range(4):
            writer.append({"action": _act(), "observation": _observe()})
            if step >= 2:
                writer.create_item(
                    table="my_table",
                    priority=1.5,
                    trajectory={
                        "actions": writer.history["action"][-3:],
                        "observations": writer.history["observation"][-3:],
                    },
                )


@pytest.fixture(scope="module")
def server():
    server = reverb.Server(
        tables=[
            reverb.Table(
                name="my_table",
                sampler=reverb.selectors.Prioritized(priority_exponent=0.8),
                remover=reverb.selectors.Fifo(),
                max_size=int(1e6),
                rate_limiter=reverb.rate_limiters.MinSize(2),
                signature={
                    "actions": tf.TensorSpec([3, *_ACTION.shape], _ACTION.dtype),
                    "observations": tf.TensorSpec(
                        [3, *_OBSERVATION.shape], _OBSERVATION.dtype
                    ),
                },
            )
        ]
    )
    yield server
    server.stop()


def test_another_process_samples_what_was_written(server, run, tmp_path):
    _write(reverb.Client(f"localhost:{server.port}"), num_keep_alive_refs=3)
    (tmp_path / "sampler.py").write_text(_SAMPLER)
    code, output, errors = run(str(tmp_path / "sampler.py"), str(server.port))
    assert code == 0, errors
    of_a_batch = [
        "(2,) uint64",
        "(2,) float64",
        "(2, 3, 10, 10) uint8",
        "(2, 3, 2) float32",
        "{0.5}",
    ]
    assert output.splitlines() == ["(None, 3, 10, 10)", *of_a_batch * 2]


def test_too_few_references_are_an_error(server):
    with pytest.raises(
        ValueError, match="TrajectoryColumns cannot contain any None data references"
    ):
        _write(server.localhost_client(), num_keep_alive_refs=2)
