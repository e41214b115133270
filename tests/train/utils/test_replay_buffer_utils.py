import numpy as np
import pytest
import tensorflow as tf

from tfrl import replay_service
from tfrl.specs import tensor_spec
from tfrl.train.utils import replay_buffer_utils
from tfrl.trajectories import trajectory

NUMBER = tf.TensorSpec([], tf.float32)
SPEC = trajectory.Trajectory(
    step_type=tf.TensorSpec([], tf.int32),
    observation=NUMBER,
    action=(),
    policy_info=(),
    next_step_type=tf.TensorSpec([], tf.int32),
    reward=NUMBER,
    discount=NUMBER,
)


@pytest.fixture(scope="module")
def made():
    replay_buffer, observer = replay_buffer_utils.get_reverb_buffer_and_observer(
        SPEC, sequence_length=2, replay_capacity=7, min_size_limiter_size=2
    )
    yield replay_buffer, observer
    observer.close()
    replay_buffer.local_server.stop()


def test_the_observer_writes_overlapping_sequences_to_the_buffer(made):
    replay_buffer, observer = made
    for i in range(4):
        frame = trajectory.mid(np.float32(i), (), (), np.float32(1), np.float32(1))
        observer(frame)
    observer.flush()
    assert replay_buffer.num_frames() == 3
    sequences, _ = next(iter(replay_buffer.as_dataset(sample_batch_size=8)))
    found = {tuple(pair) for pair in sequences.observation.numpy()}
    assert found <= {(0, 1), (1, 2), (2, 3)}
    info = replay_buffer.get_table_info()
    assert (info.name, info.max_size) == ("uniform_table", 7)
    assert info.rate_limiter_info.min_size_to_sample == 2


def test_a_running_server_is_used(made):
    server = made[0].local_server
    other = replay_buffer_utils.get_reverb_buffer(
        SPEC, 2, reverb_server_address=f"localhost:{server.port}"
    )
    assert other.local_server is None
    assert other.num_frames() == made[0].num_frames()


def test_a_table_of_ones_own_is_used():
    table = replay_service.Table.queue(
        "queue", 5, signature=tensor_spec.add_outer_dim(SPEC, 3)
    )
    replay_buffer = replay_buffer_utils.get_reverb_buffer(
        SPEC, 3, table_name="queue", table=table
    )
    assert replay_buffer.get_table_info().max_times_sampled == 1
    replay_buffer.local_server.stop()
