import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.environments import native
from tfrl.networks import q_network
from tfrl.replay_buffers.ring.packed_table import PackedTable
from tfrl.replay_buffers.table import Table

RNG = np.random.default_rng(0)
NUMBERS = [
    tf.int8,
    tf.int16,
    tf.int32,
    tf.int64,
    tf.uint8,
    tf.uint16,
    tf.uint32,
    tf.uint64,
    tf.float16,
    tf.bfloat16,
    tf.float32,
    tf.float64,
    tf.complex64,
    tf.complex128,
]


def compiled(function):
    return tf.function(function, jit_compile=True, autograph=False)


def random_bits(spec, batch):
    """Any bits at all: NaNs with payloads, infinities, denormals, extremes."""
    shape = (*batch, *spec.shape)
    if spec.dtype == tf.bool:
        return tf.constant(RNG.integers(0, 2, shape), tf.bool)
    count = int(np.prod(shape)) * spec.dtype.size
    bits = RNG.integers(0, 256, count, dtype=np.uint8).tobytes()
    values = np.frombuffer(bits, spec.dtype.as_numpy_dtype).reshape(shape)
    return tf.constant(values, spec.dtype)


def bits(tensor):
    return tensor.numpy().tobytes()


def assert_same(nest, other):
    tf.nest.assert_same_structure(nest, other)
    for one, two in zip(tf.nest.flatten(nest), tf.nest.flatten(other), strict=True):
        assert (one.shape, one.dtype) == (two.shape, two.dtype)
        assert bits(one) == bits(two)


def num_bytes(table):
    return sum(v.shape.num_elements() * v.dtype.size for v in table.variables())


def raw_bytes(spec, capacity):
    return capacity * sum(
        leaf.shape.num_elements() * leaf.dtype.size for leaf in tf.nest.flatten(spec)
    )


SPEC = {
    "numbers": tuple(
        (tf.TensorSpec([], dtype), tf.TensorSpec([2, 3], dtype))
        for dtype in [tf.bool, *NUMBERS]
    ),
    "empty": tf.TensorSpec([0], tf.float32),
    "large": tf.TensorSpec([40, 40], tf.float32),
    "last": tf.TensorSpec([2], tf.float32),
}


@pytest.fixture(scope="module")
def filled():
    """A table of four rows, all written, and what was written."""
    table = PackedTable(SPEC, capacity=4)
    values = tf.nest.map_structure(lambda spec: random_bits(spec, [4]), SPEC)
    for block in range(2):
        rows = tf.nest.map_structure(lambda v, i=block: v[2 * i : 2 * i + 2], values)
        table.write_block(tf.constant(block, tf.int64), rows)
    return table, values


def test_rows_start_as_zeros():
    spec = (tf.TensorSpec([2], tf.float32), {"x": tf.TensorSpec([], tf.int64)})
    floats, rest = PackedTable(spec, capacity=3).read([0, 2])
    np.testing.assert_array_equal(floats, np.zeros([2, 2]))
    np.testing.assert_array_equal(rest["x"], [0, 0])


def test_every_bit_of_every_dtype_comes_back(filled):
    table, values = filled
    assert_same(table.read(tf.range(4)), values)


@pytest.mark.parametrize(
    "value",
    [
        *(np.float32(x) for x in (-0.0, np.inf, -np.inf, 1e-45)),
        np.array([0x7FC12345, 0xFFA54321], np.uint32).view(np.float32),  # NaNs.
        *(np.float64(x) for x in (-0.0, 5e-324)),
        np.iinfo(np.int64).min,
        np.iinfo(np.int64).max,
        np.uint64(2**64 - 1),
    ],
)
@pytest.mark.parametrize("as_xla", [False, True])
def test_extremes_come_back(value, as_xla):
    value = tf.constant(value)
    spec = [tf.TensorSpec(value.shape, value.dtype), tf.TensorSpec([], tf.float32)]
    table = PackedTable(spec, capacity=2)

    def write_and_read():
        table.write_block(1, [value[tf.newaxis], tf.ones([1])])
        return table.read(1)

    result = compiled(write_and_read)() if as_xla else write_and_read()
    assert_same(result, [value, tf.constant(1.0)])


@pytest.mark.parametrize(
    "rows", [2, [3, 0], [[1], [2]], [[[0, 1, 1]]], np.zeros([0], np.int32)]
)
def test_rows_are_read_in_any_shape(filled, rows):
    table, values = filled
    rows = tf.constant(rows, tf.int32)
    expected = tf.nest.map_structure(lambda v: tf.gather(v, rows), values)
    assert_same(table.read(rows), expected)


def test_rows_of_unknown_number_are_read(filled):
    table, values = filled
    read = tf.function(table.read, [tf.TensorSpec([None, None], tf.int64)])
    expected = tf.nest.map_structure(lambda v: v[tf.newaxis, 1:3], values)
    assert_same(read(tf.constant([[1, 2]], tf.int64)), expected)


def test_small_numbers_share_a_variable_and_large_ones_do_not():
    spec = {
        "a": tf.TensorSpec([1024], tf.float32),  # 4096 bytes.
        "b": tf.TensorSpec([1025], tf.float32),
        "c": tf.TensorSpec([2], tf.int64),
        "d": tf.TensorSpec([3], tf.uint8),
        "e": tf.TensorSpec([], tf.bool),
    }
    variables = PackedTable(spec, capacity=5).variables()
    assert [(v.dtype, v.shape) for v in variables] == [
        (tf.float32, [5, 1025]),
        (tf.uint8, [5, 3]),
        (tf.bool, [5]),
        (tf.uint32, [5, 1024 + 2 * 2]),
    ]
    assert not any(v.trainable for v in variables)


def test_one_number_alone_keeps_its_dtype():
    table = PackedTable(tf.TensorSpec([2], tf.float32), capacity=3)
    assert [(v.dtype, v.shape) for v in table.variables()] == [(tf.float32, [3, 2])]
    table.write_block(1, tf.constant([[1.0, 2.0]]))
    np.testing.assert_array_equal(table.read([0, 1]), [[0, 0], [1, 2]])


@pytest.mark.slow
def test_blocks_written_compiled_and_plain_are_rows_written_in_a_plain_table(filled):
    _, values = filled
    spec = {name: leaf for name, leaf in SPEC.items() if name != "empty"}
    values = {name: value for name, value in values.items() if name != "empty"}
    plain, xla, rows = (
        make(spec, capacity=6) for make in (PackedTable, PackedTable, Table)
    )

    @compiled
    def compiled_write(block, pair):
        xla.write_block(block, pair)

    for block in (2, 0, 2, 1):
        pair = tf.nest.map_structure(lambda v, i=block: v[i : i + 2], values)
        plain.write_block(block, pair)
        compiled_write(tf.constant(block, tf.int64), pair)
        rows.write([2 * block, 2 * block + 1], pair)
    for one, two in zip(plain.variables(), xla.variables(), strict=True):
        assert bits(one) == bits(two)
    assert_same(plain.read(tf.range(6)), rows.read(tf.range(6)))


def test_values_of_another_structure_are_refused():
    table = PackedTable({"x": tf.TensorSpec([], tf.float32)}, capacity=2)
    with pytest.raises((TypeError, ValueError), match="structure"):
        table.write_block(0, tf.zeros([1]))


def test_a_spec_without_a_fixed_shape_is_refused_by_its_path():
    with pytest.raises(ValueError, match=r"data_spec\['x'\].*fully defined shape"):
        PackedTable({"x": tf.TensorSpec([None], tf.float32)}, capacity=1)


def test_contents_survive_a_checkpoint(filled, tmp_path):
    table, values = filled
    path = tf.train.Checkpoint(table=table).write(str(tmp_path / "c"))
    restored = PackedTable(SPEC, capacity=4)
    tf.train.Checkpoint(table=restored).read(path).assert_consumed()
    assert_same(restored.read(tf.range(4)), values)


def test_the_frames_of_a_dqn_take_no_more_than_their_size():
    environment = native.load("CartPole-v1")
    specs = environment.time_step_spec(), environment.action_spec()
    network = q_network.QNetwork(specs[0].observation, specs[1], fc_layer_params=(2,))
    agent = dqn_agent.DqnAgent(*specs, q_network=network, optimizer=None)
    table = PackedTable(agent.collect_data_spec, capacity=1000)
    raw = raw_bytes(agent.collect_data_spec, 1000)
    assert raw <= num_bytes(table) <= 1.05 * raw
    assert len(table.variables()) == 1


def test_stacks_of_images_take_no_more_than_their_size():
    spec = {
        "image": tf.TensorSpec([84, 84, 4], tf.uint8),
        "action": tf.TensorSpec([], tf.int64),
        "reward": tf.TensorSpec([], tf.float32),
    }
    table = PackedTable(spec, capacity=100)
    assert num_bytes(table) == raw_bytes(spec, 100)
