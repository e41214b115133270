import re

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import accelerators
from tfrl.replay_buffers.table import Table

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
