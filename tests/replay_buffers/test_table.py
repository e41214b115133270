import re

import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.compilation import accelerators
from tfrl.environments import native
from tfrl.networks import q_network
from tfrl.replay_buffers.table import PackedTable, Table

SPEC = (
    tf.TensorSpec([2], tf.float32, "action"),
    {"camera": tf.TensorSpec([], tf.uint8, "camera")},
)


def _values(action, camera):
    return (
        tf.constant(action, tf.float32),
        {"camera": tf.constant(camera, tf.uint8)},
    )


def test_rows_start_as_zeros():
    action, rest = Table(SPEC, capacity=3).read([0, 2])
    np.testing.assert_array_equal(action, np.zeros([2, 2]))
    np.testing.assert_array_equal(rest["camera"], [0, 0])


def test_one_row_is_written_and_read_without_a_batch_dimension():
    table = Table(SPEC, capacity=3)
    table.write(1, _values([1, 2], 7))
    action, rest = table.read(1)
    np.testing.assert_array_equal(action, [1, 2])
    assert rest["camera"].numpy() == 7
    np.testing.assert_array_equal(table.read(0)[0], [0, 0])


def test_rows_are_written_in_the_order_given():
    table = Table(SPEC, capacity=4)
    table.write([3, 0], _values([[1, 2], [3, 4]], [7, 8]))
    np.testing.assert_array_equal(table.read([0, 3])[0], [[3, 4], [1, 2]])
    np.testing.assert_array_equal(table.read([[0], [3]])[1]["camera"], [[8], [7]])


@pytest.mark.parametrize("on_host", [True, False])
@pytest.mark.parametrize("as_function", [False, True], ids=["eager", "graph"])
def test_blocks_of_rows_are_written(monkeypatch, on_host, as_function):
    monkeypatch.setattr(accelerators, "is_host", lambda device: on_host)
    table = Table(SPEC, capacity=6)
    block = tf.Variable(2, dtype=tf.int64)

    def write():
        table.write_block(block, _values([[1, 2], [3, 4]], [7, 255]))
        return tf.constant(0)

    traced = tf.function(write, autograph=False)
    (traced if as_function else write)()
    block.assign(0)
    (traced if as_function else write)()
    action, rest = table.read(tf.range(6))
    pairs = [[1, 2], [3, 4]]
    np.testing.assert_array_equal(action, [*pairs, [0, 0], [0, 0], *pairs])
    np.testing.assert_array_equal(rest["camera"], [7, 255, 0, 0, 7, 255])
    ops = {op.type for op in traced.get_concrete_function().graph.get_operations()}
    scatters = "ResourceScatterUpdate" in ops
    assert scatters == on_host
    assert scatters != ("ResourceStridedSliceAssign" in ops)


def test_some_slots_are_read_in_the_nest_that_is_asked_for():
    table = Table(SPEC, capacity=2)
    table.write(0, _values([1, 2], 7))
    camera, (action,) = table.read(0, slots=("camera", ["action"]))
    assert camera.numpy() == 7
    np.testing.assert_array_equal(action, [1, 2])


def test_some_slots_are_written_and_the_others_kept():
    table = Table(SPEC, capacity=2)
    table.write(0, _values([1, 2], 7))
    table.write(0, [tf.constant(9, tf.uint8)], slots=["camera"])
    action, rest = table.read(0)
    np.testing.assert_array_equal(action, [1, 2])
    assert rest["camera"].numpy() == 9


def test_values_of_another_structure_are_refused():
    table = Table(SPEC, capacity=2)
    with pytest.raises((TypeError, ValueError), match="structure"):
        table.write(0, tf.zeros([2]))


def test_slots_are_called_by_their_specs_names():
    table = Table(SPEC, capacity=1)
    assert table.slots == ("action", {"camera": "camera"})
    assert [v.name for v in table.variables()] == ["Table/action:0", "Table/camera:0"]


@pytest.mark.parametrize("names", [(None, None, None), ("same", "same", "other")])
def test_slots_are_called_by_their_paths_where_names_are_missing_or_shared(names):
    a, b, c = (tf.TensorSpec([], tf.float32, name) for name in names)
    table = Table((a, {"x": (b, c)}), capacity=1)
    assert table.slots == ("0", {"x": ("1/x/0", "1/x/1")})


def test_variables_are_not_trainable():
    assert not Table(SPEC, capacity=1).trainable_variables


def test_a_spec_without_a_fixed_shape_is_refused_by_its_path():
    with pytest.raises(ValueError, match=r"data_spec\['x'\].*fully defined shape"):
        Table({"x": tf.TensorSpec([None], tf.float32)}, capacity=1)


def test_contents_survive_a_checkpoint(tmp_path):
    table = Table(SPEC, capacity=2)
    table.write(1, _values([1, 2], 7))
    path = tf.train.Checkpoint(table=table).save(str(tmp_path / "ckpt"))
    restored = Table(SPEC, capacity=2)
    tf.train.Checkpoint(table=restored).restore(path).assert_consumed()
    np.testing.assert_array_equal(restored.read(1)[0], [1, 2])


def test_reads_and_writes_compile():
    table = Table(SPEC, capacity=3)

    @tf.function(jit_compile=True)
    def write_then_read(row):
        table.write(row, _values([5, 6], 3))
        return table.read(row)

    action, rest = write_then_read(tf.constant(2))
    np.testing.assert_array_equal(action, [5, 6])
    assert rest["camera"].numpy() == 3


def test_a_block_is_written_compiled_and_plain():
    plain, compiled = (Table(SPEC, capacity=6) for _ in range(2))

    @tf.function(jit_compile=True)
    def write(block, values):
        compiled.write_block(block, values)

    for block, numbers in ((2, [1, 2]), (0, [3, 4]), (2, [5, 6])):
        values = _values([[n, -n] for n in numbers], numbers)
        plain.write_block(block, values)
        write(tf.constant(block, tf.int64), values)
    expected = [3, 4, 0, 0, 5, 6]
    for table in (plain, compiled):
        action, rest = table.read(tf.range(6))
        np.testing.assert_array_equal(action, [[n, -n] for n in expected])
        np.testing.assert_array_equal(rest["camera"], expected)


def test_a_block_of_another_structure_is_refused():
    with pytest.raises((TypeError, ValueError), match="structure"):
        Table(SPEC, capacity=2).write_block(0, tf.zeros([1, 2]))


def _write_once(table, block, values):
    """What `write_block` would be, if XLA did not mistake it."""
    for variable, value in zip(table.variables(), tf.nest.flatten(values), strict=True):
        blocks = tf.reshape(variable, [-1, *value.shape])
        blocks = tf.tensor_scatter_nd_update(blocks, [[block]], value[tf.newaxis])
        variable.assign(tf.reshape(blocks, variable.shape))


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("write", "copies"), [(Table.write_block, False), (_write_once, True)]
)
def test_no_write_copies_the_table_in_a_compiled_loop(write, copies):
    table = Table((tf.TensorSpec([4], tf.float32),), capacity=3 * 1001)

    @tf.function(jit_compile=True, autograph=False)
    def loop(n):
        def body(i, total):
            write(table, i % 1001, (tf.fill([3, 4], total),))
            (sample,) = table.read(i * tf.range(8) % 3003)
            return i + 1, total + tf.reduce_sum(sample)

        return tf.while_loop(lambda i, _: i < n, body, (0, 1.0))

    program = loop.experimental_get_compiler_ir(tf.constant(5))("optimized_hlo")
    # Its shape is of 3003 rows, or of 1001 blocks of 3.
    found = re.findall(r"= f32\[(?:3003|1001,3),4\]\S* copy\(", program)
    assert bool(found) == copies


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


PACKED_SPEC = {
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
    table = PackedTable(PACKED_SPEC, capacity=4)
    values = tf.nest.map_structure(lambda spec: random_bits(spec, [4]), PACKED_SPEC)
    for block in range(2):
        rows = tf.nest.map_structure(lambda v, i=block: v[2 * i : 2 * i + 2], values)
        table.write_block(tf.constant(block, tf.int64), rows)
    return table, values


def test_packed_rows_start_as_zeros():
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
    spec = {name: leaf for name, leaf in PACKED_SPEC.items() if name != "empty"}
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


def test_packed_values_of_another_structure_are_refused():
    table = PackedTable({"x": tf.TensorSpec([], tf.float32)}, capacity=2)
    with pytest.raises((TypeError, ValueError), match="structure"):
        table.write_block(0, tf.zeros([1]))


def test_a_packed_spec_without_a_fixed_shape_is_refused_by_its_path():
    with pytest.raises(ValueError, match=r"data_spec\['x'\].*fully defined shape"):
        PackedTable({"x": tf.TensorSpec([None], tf.float32)}, capacity=1)


def test_packed_contents_survive_a_checkpoint(filled, tmp_path):
    table, values = filled
    path = tf.train.Checkpoint(table=table).write(str(tmp_path / "c"))
    restored = PackedTable(PACKED_SPEC, capacity=4)
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
