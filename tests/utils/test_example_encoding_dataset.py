import pathlib
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.drivers import dynamic_step_driver, py_driver
from tfrl.environments import suite_gym, tf_py_environment
from tfrl.networks import q_network
from tfrl.policies import random_py_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import example_encoding_dataset
from tfrl.utils.batched_observer_unbatching import BatchedObserverUnbatching
from tfrl.utils.example_encoding_dataset import (
    TFRecordObserver,
    encode_spec_to_file,
    load_tfrecord_dataset,
    parse_encoded_spec_from_file,
)

SPEC = {
    "x": tf.TensorSpec((2,), tf.float32, "x"),
    "n": tensor_spec.BoundedTensorSpec((), tf.int64, 0, 99, "n"),
}


def frame(number):
    return {"x": np.full(2, number, np.float32), "n": np.array(number)}


def record(path, numbers, **kwargs):
    observer = TFRecordObserver(str(path), SPEC, py_mode=True, **kwargs)
    for number in numbers:
        observer(frame(number))
    observer.close()
    return str(path)


def numbers_in(dataset):
    return [np.squeeze(item["n"]).tolist() for item in dataset.as_numpy_iterator()]


@pytest.mark.parametrize(
    "spec",
    [
        SPEC,
        tf.TensorSpec((3,), tf.uint8, "picture"),
        [tf.TensorSpec((), tf.bool), (tf.TensorSpec((1,)), ())],
        trajectory.Trajectory(
            *(
                tf.TensorSpec((), tf.int32, name)
                for name in trajectory.Trajectory._fields
            )
        )._replace(
            observation={
                "b": tensor_spec.BoundedTensorSpec((2,), tf.float32, 0, [1, 2])
            }
        ),
    ],
)
def test_specs_come_back_equal_and_with_their_names(tmp_path, spec):
    path = str(tmp_path / "frames.spec")
    encode_spec_to_file(path, spec)
    parsed = parse_encoded_spec_from_file(path)
    assert parsed == spec
    tf.nest.assert_same_structure(parsed, spec)
    names = [[leaf.name for leaf in tf.nest.flatten(nest)] for nest in (parsed, spec)]
    assert names[0] == names[1]


def test_frames_come_back_in_order(tmp_path):
    path = record(tmp_path / "new" / "frames.tfrecord", range(5))
    dataset = load_tfrecord_dataset(path)
    assert dataset.element_spec["x"] == tf.TensorSpec((1, 2), tf.float32)
    assert numbers_in(dataset) == [0, 1, 2, 3, 4]
    first = next(iter(load_tfrecord_dataset([path], add_batch_dim=False)))
    np.testing.assert_array_equal(first["x"], [0, 0])


def test_a_recording_made_by_an_earlier_release_is_read():
    # Commit 164c8db wrote it by `record(PATH, [3, 1, 4])`.
    path = str(pathlib.Path(__file__).parent / "recorded_before" / "frames.tfrecord")
    assert parse_encoded_spec_from_file(path + ".spec") == SPEC
    assert numbers_in(load_tfrecord_dataset(path)) == [3, 1, 4]


def test_pairs_are_of_one_file_and_files_take_turns(tmp_path):
    files = [
        record(tmp_path / "a", range(5)),
        record(tmp_path / "b", range(10, 14)),
    ]
    paired = load_tfrecord_dataset(files, as_experience=True)
    assert numbers_in(paired) == [[0, 1], [10, 11], [2, 3], [12, 13]]
    in_turn = load_tfrecord_dataset(files, num_parallel_reads=1)
    assert numbers_in(in_turn) == [0, 1, 2, 3, 4, 10, 11, 12, 13]


def test_an_empty_recording_has_no_frames(tmp_path):
    assert numbers_in(load_tfrecord_dataset(record(tmp_path / "empty", []))) == []


def test_own_decoder_and_own_spec(tmp_path):
    path = record(tmp_path / "frames", range(2))
    decoded = load_tfrecord_dataset(
        path, decoder=tf.strings.length, add_batch_dim=False
    ).as_numpy_iterator()
    assert all(length > 0 for length in decoded)
    (tmp_path / "frames.spec").unlink()
    some = load_tfrecord_dataset(path, spec={"n": SPEC["n"]})
    assert numbers_in(some) == [0, 1]


def test_flush_makes_frames_readable_before_close(tmp_path):
    observer = TFRecordObserver(str(tmp_path / "frames"), SPEC, py_mode=True)
    observer(frame(7))
    observer.flush()
    assert numbers_in(load_tfrecord_dataset(str(tmp_path / "frames"))) == [7]
    observer.close()


def test_pictures_are_compressed_and_come_back(tmp_path):
    spec = tf.TensorSpec((8, 8, 4), tf.uint8)
    picture = np.random.default_rng(0).integers(0, 255, (8, 8, 4), np.uint8)
    path = str(tmp_path / "frames")
    observer = TFRecordObserver(path, spec, py_mode=True, compress_image="png")
    observer(picture)
    observer.close()
    dataset = load_tfrecord_dataset(path, compress_image=True, add_batch_dim=False)
    np.testing.assert_array_equal(next(iter(dataset)), picture)


def test_records_batches_of_one_in_a_graph(tmp_path):
    path = str(tmp_path / "frames")

    class Slow(TFRecordObserver):
        def write(self, *data):
            time.sleep(0.001)
            super().write(*data)

    observer, other = Slow(path, SPEC), tf.Variable(0)

    @tf.function
    def write(count):
        observer({"x": tf.zeros([1, 2]), "n": count[None]})
        for i in tf.range(count):
            other.assign_add(1)  # TensorFlow orders the loop by this variable.
            observer({"x": tf.fill([1, 2], tf.cast(i, tf.float32)), "n": i[None]})
        observer({"x": tf.zeros([1, 2]), "n": count[None]})

    for _ in range(5):
        write(tf.constant(3, tf.int64))
    observer({"x": np.zeros((1, 2), np.float32), "n": np.array([9])})
    observer.close()
    assert numbers_in(load_tfrecord_dataset(path)) == [3, 0, 1, 2, 3] * 5 + [9]


def test_a_larger_batch_is_an_error(tmp_path):
    observer = TFRecordObserver(str(tmp_path / "frames"), SPEC)
    with pytest.raises(ValueError, match=r"data: got .*\(2,.*BatchedObserverUnbatch"):
        observer({"x": tf.zeros((2, 2)), "n": tf.zeros(2, tf.int64)})


def test_rows_of_a_batch_are_recorded_one_a_file(tmp_path):
    files = iter([str(tmp_path / "0"), str(tmp_path / "1")])
    observers = []

    def make():
        observers.append(TFRecordObserver(next(files), SPEC, py_mode=True))
        return observers[-1]

    batched = BatchedObserverUnbatching(make, 2)
    for i in range(2):
        batched({"x": np.zeros((2, 2), np.float32), "n": np.array([i, i + 10])})
    for observer in observers:
        observer.close()
    assert numbers_in(load_tfrecord_dataset(observers[1].output_path)) == [10, 11]


def test_a_frame_that_breaks_the_spec_is_an_error(tmp_path):
    observer = TFRecordObserver(str(tmp_path / "frames"), SPEC, py_mode=True)
    with pytest.raises(ValueError, match=r"x: got shape \(3,\), expected"):
        observer({"x": np.zeros(3, np.float32), "n": np.array(0)})


@pytest.mark.parametrize("missing_bytes", [1, 40])
def test_a_file_that_was_cut_off_is_an_error_that_names_it(tmp_path, missing_bytes):
    path = record(tmp_path / "frames", range(3))
    whole = (tmp_path / "frames").read_bytes()
    (tmp_path / "frames").write_bytes(whole[:-missing_bytes])
    message = rf"frames record 2: got a file of {len(whole) - missing_bytes} bytes.*cut"
    with pytest.raises(ValueError, match=message):
        load_tfrecord_dataset(path)


@pytest.mark.parametrize("content", [b"hi", b"this is a letter to an old friend"])
def test_a_file_of_another_kind_is_an_error_that_names_it(tmp_path, content):
    (tmp_path / "letter").write_bytes(content)
    with pytest.raises(ValueError, match=r"letter record 0: .* it is not a TFRecord"):
        load_tfrecord_dataset(str(tmp_path / "letter"), spec=SPEC)
    with pytest.raises(ValueError, match=r"letter record 0: .* it is not a TFRecord"):
        parse_encoded_spec_from_file(str(tmp_path / "letter"))


def test_frames_of_another_spec_are_an_error_that_names_the_field(tmp_path):
    path = record(tmp_path / "frames", range(2))
    with pytest.raises(ValueError, match=r"frames record 0: .*Feature: reward.*give"):
        load_tfrecord_dataset(path, spec={"reward": tf.TensorSpec(())})
    with pytest.raises(ValueError, match=r"frames record 0: .*Key: x"):
        load_tfrecord_dataset(path, spec={"x": tf.TensorSpec((3,))})


def test_a_later_record_of_another_spec_is_named_when_it_is_read(tmp_path):
    path = str(tmp_path / "frames")
    record(path, range(2))
    serialized = list(tf.data.TFRecordDataset(path).as_numpy_iterator())
    with tf.io.TFRecordWriter(path) as writer:
        for item in (*serialized, b""):
            writer.write(item)
    read = []
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="frames record 2, Feature: n"
    ):
        read.extend(load_tfrecord_dataset(path))
    assert len(read) < 3


def test_a_record_whose_checksum_is_wrong_is_an_error(tmp_path):
    path = record(tmp_path / "frames", range(2))
    content = bytearray((tmp_path / "frames").read_bytes())
    content[20] ^= 255
    (tmp_path / "frames").write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"frames record 0: got .*corrupted record"):
        load_tfrecord_dataset(path)


def test_missing_files_and_no_files_are_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"dataset_files: got .*nowhere"):
        load_tfrecord_dataset(str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"dataset_files: got \[\], expected at least"):
        load_tfrecord_dataset([])
    path = record(tmp_path / "frames", range(1))
    (tmp_path / "frames.spec").unlink()
    with pytest.raises(FileNotFoundError, match=r"input_path: got .*frames\.spec"):
        load_tfrecord_dataset(path)
    record(tmp_path / "frames.spec", range(1))
    with pytest.raises(ValueError, match=r"input_path: got .*whose first record is no"):
        load_tfrecord_dataset(path)


def test_files_of_different_specs_are_an_error(tmp_path):
    files = [record(tmp_path / name, range(1)) for name in "ab"]
    encode_spec_to_file(files[1] + ".spec", {"x": SPEC["x"]})
    with pytest.raises(ValueError, match=r"dataset_files: got '.*b' with the spec"):
        load_tfrecord_dataset(files)


@pytest.fixture(scope="module")
def environment():
    return suite_gym.load("CartPole-v1", max_episode_steps=7)


@pytest.fixture(scope="module")
def agent(environment):
    tf_env = tf_py_environment.TFPyEnvironment(environment)
    net = q_network.QNetwork(
        tf_env.observation_spec(), tf_env.action_spec(), fc_layer_params=(8,)
    )
    return dqn_agent.DqnAgent(
        tf_env.time_step_spec(),
        tf_env.action_spec(),
        q_network=net,
        optimizer=keras.optimizers.Adam(0.01),
    )


@pytest.fixture(scope="module")
def recording(environment, agent, tmp_path_factory):
    """40 frames of CartPole in a file, and the same frames in a list."""
    path = str(tmp_path_factory.mktemp("recording") / "cartpole.tfrecord")
    observer = TFRecordObserver(path, agent.collect_data_spec, py_mode=True)
    frames = []
    policy = random_py_policy.RandomPyPolicy(
        environment.time_step_spec(), environment.action_spec(), seed=0
    )
    py_driver.PyDriver(
        environment, policy, [observer, frames.append], max_steps=40
    ).run(environment.reset())
    observer.close()
    return path, frames


def test_a_recorded_trajectory_comes_back_as_it_was(recording):
    path, frames = recording
    dataset = load_tfrecord_dataset(path, as_trajectories=True, add_batch_dim=False)
    read = list(dataset.as_numpy_iterator())
    assert len(read) == len(frames) > 40
    assert isinstance(read[0], trajectory.Trajectory)
    for ours, original in zip(read, frames, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, ours, original)
    assert {int(item.step_type) for item in read} == {
        int(ts.StepType.FIRST),
        int(ts.StepType.MID),
        int(ts.StepType.LAST),
    }


def test_a_driver_in_the_graph_records(environment, agent, tmp_path):
    path = str(tmp_path / "frames")
    observer = TFRecordObserver(path, agent.collect_data_spec)
    dynamic_step_driver.DynamicStepDriver(
        tf_py_environment.TFPyEnvironment(environment),
        agent.collect_policy,
        [observer],
        num_steps=10,
    ).run()
    observer.close()
    dataset = load_tfrecord_dataset(path, as_trajectories=True)
    steps = [item.step_type.numpy().tolist() for item in dataset]
    assert len(steps) >= 10
    assert steps[0] == [int(ts.StepType.FIRST)]


def test_dqn_trains_from_a_recording(recording, agent):
    dataset = load_tfrecord_dataset(
        recording[0], as_experience=True, as_trajectories=True
    ).batch(8, drop_remainder=True)
    before = [v.numpy() for v in agent.policy.variables()]
    losses = [float(agent.train(experience).loss) for experience in dataset]
    assert len(losses) == 2
    assert np.all(np.isfinite(losses))
    after = [v.numpy() for v in agent.policy.variables()]
    assert any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_decoding_is_traced_once(tmp_path):
    files = [record(tmp_path / name, range(3)) for name in "ab"]
    calls = []

    def decoder(serialized):
        calls.append(serialized)
        return tf.strings.length(serialized)

    dataset = example_encoding_dataset.load_tfrecord_dataset(files, decoder=decoder)
    assert len(list(dataset)) == len(list(dataset)) == 6
    assert len(calls) == 1
