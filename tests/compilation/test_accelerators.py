"""In a graph for an accelerator, the same numbers come from other operations."""

import ast
import pathlib

import numpy as np
import pytest
import tensorflow as tf

import tfrl
from tests.train import gpu_walk
from tfrl.compilation import accelerators
from tfrl.metrics.tf_deque import TFDeque
from tfrl.replay_buffers.ring import sum_tree
from tfrl.trajectories import episodes, trajectory, transitions
from tfrl.utils.random_numbers import permutations, seeds

GPU = "/device:GPU:0"
SEED = [3, 8]


def traced(function):
    """Returns a concrete function that is traced for an accelerator, and runs here."""

    def in_context():
        with accelerators.graph_for(GPU):
            return function()

    return tf.function(in_context, autograph=False).get_concrete_function()


def assert_same(function):
    """Compares the results of a graph for an accelerator with those of a plain one."""
    plain = tf.function(function, autograph=False)()
    ours = traced(function)()
    tf.nest.map_structure(np.testing.assert_array_equal, ours, plain)


def ops(trace):
    return {op.type for op in trace.graph.get_operations()}


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("/device:CPU:0", True),
        ("/job:localhost/replica:0/task:0/device:CPU:0", True),
        ("", True),
        ("/device:CPU:1", False),
        ("/device:GPU:0", False),
        ("/job:localhost/replica:0/task:0/device:GPU:1", False),
    ],
)
def test_the_host_is_the_first_cpu(device, expected):
    assert accelerators.is_host(device) == expected


def test_only_plain_graphs_are_for_an_accelerator():
    seen = []

    def look():
        seen.append(accelerators.in_graph())
        return tf.constant(0)

    with accelerators.graph_for(GPU):
        look()
        tf.function(look, autograph=False)()
        tf.function(look, autograph=False, jit_compile=True)()
        with accelerators.graph_for("/device:CPU:0"):
            tf.function(look, autograph=False)()
    tf.function(look, autograph=False)()
    assert seen == [False, True, False, False, False]


def test_a_loop_must_make_its_checks_itself():
    def check(value):
        condition = tf.constant(value) > 0
        with tf.control_dependencies([accelerators.assert_true(condition, ["low"])]):
            return tf.constant(value)

    assert traced(lambda: check(-1))().numpy() == -1
    with pytest.raises(tf.errors.InvalidArgumentError, match="low"):
        tf.function(lambda: check(-1), autograph=False)()


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "float32"])
def test_elements_are_moved_with_all_their_bits(dtype):
    # Words that are NaNs of several kinds, as floats.
    words = np.array([[0x7F800001, -1], [0x7FC00000, 5]]).astype(dtype)
    tensor = tf.constant(words)

    def move():
        def both(x, y):
            return tf.concat([tf.reshape(x, [-1])[1:], tf.reshape(y, [-1])], axis=0)

        def body(i, x):
            return i + 1, x[::-1] if dtype != "int32" else tf.reverse(x, [0])

        return (
            accelerators.moved(both, tensor, tensor),
            accelerators.unstack(tensor),
            accelerators.unstack(tensor, 2, axis=1),
            accelerators.equal(tensor, tensor[:1]),
            accelerators.while_loop(lambda i, _: i < 3, body, (tf.constant(0), tensor)),
        )

    assert_same(move)


def test_seeds_and_random_numbers_are_the_same():
    bound, start = tf.Variable(1000, dtype=tf.int64), tf.Variable(7, dtype=tf.int64)
    generators = [seeds.make_generator(5) for _ in range(2)]
    plain = [seeds.next_seed(generators[0]).numpy() for _ in range(2)]
    ours = traced(lambda: seeds.next_seed(generators[1]))
    np.testing.assert_array_equal(plain, [ours().numpy() for _ in range(2)])
    np.testing.assert_array_equal(*(each.state for each in generators))
    for dtype in (tf.int32, tf.int64):
        for number in (9, 40):
            for low in (0, start):
                assert_same(
                    lambda low=low, number=number, dtype=dtype: seeds.uniform(
                        tf.constant(SEED, tf.int64),
                        [number],
                        tf.convert_to_tensor(low),
                        bound.read_value(),
                        dtype,
                    )
                )
    assert_same(lambda: seeds.split_seed(tf.constant(SEED, tf.int64), 3))


def test_permutations_need_nothing_of_the_host():
    trace = traced(
        lambda: tf.while_loop(
            lambda i, _: i < 2,
            lambda i, x: (
                i + 1,
                tf.cast(
                    permutations.permutations(tf.cast(x[0, :2], tf.int64), 2, 64),
                    tf.float32,
                ),
            ),
            (0, tf.zeros([2, 64])),
        )
    )
    assert gpu_walk.crossings(trace) == []


def frames():
    """Frames `[B, T]` of short episodes with a cut."""
    step_type = tf.constant([[0, 1, 2, 0, 1], [1, 1, 1, 2, 0], [1, 2, 0, 0, 1]])
    next_step_type = tf.constant([[1, 2, 0, 1, 1], [1, 1, 2, 0, 1], [2, 0, 1, 1, 2]])
    numbers = tf.reshape(tf.range(15.0), [3, 5])
    return trajectory.Trajectory(
        step_type,
        numbers,
        tf.cast(numbers, tf.int64),
        (),
        next_step_type,
        numbers,
        numbers / 15,
    )


@pytest.mark.parametrize("length", [2, 4])
def test_transitions_are_the_same(length):
    def make():
        part = tf.nest.map_structure(lambda leaf: leaf[:, :length], frames())
        return transitions.to_n_step_transition(part, gamma=0.5)

    assert_same(make)


def test_episodes_are_found_alike():
    assert_same(lambda: episodes.in_complete_episode(frames()))
    assert_same(lambda: episodes.is_padding(frames()))
    assert_same(lambda: frames().is_boundary())


def test_a_deque_is_filled_without_a_condition():
    plain, ours = TFDeque(3, tf.float32), TFDeque(3, tf.float32)
    values = tf.constant([1.0, 2.0, 3.0, 4.0])

    def extend(deque, where):
        deque.extend(values, where=tf.constant(where))
        return deque._buffer[:3], deque._head.read_value()

    for where in ([False] * 4, [True, False, True, False], [True] * 4):
        trace = traced(lambda where=where: extend(ours, where))
        assert not {"If", "StatelessIf"} & ops(trace)
        expected = extend(plain, where)
        tf.nest.map_structure(np.testing.assert_array_equal, trace(), expected)


def test_equal_leaves_of_a_tree_get_the_largest_value():
    tree = sum_tree.SumTree(20)
    leaves = tf.constant([3, 5, 3, 7], tf.int64)
    values = tf.constant([1.0, 2.0, 4.0, 3.0], tf.float64)
    traced(lambda: tree.write(leaves, values, tf.fill([4], True)))()
    np.testing.assert_array_equal(tree.read(leaves), [4.0, 2.0, 4.0, 3.0])


# Modules whose functions run in the graphs of loops; the functions of
# `replay_buffers/reverb` run in pipelines, on the host.
ROOT = pathlib.Path(tfrl.__file__).parent
SLICING = [
    path
    for folder in ("agents", "replay_buffers", "trajectories", "train/loops")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.parent.name != "reverb"
]


def bypassing(source):
    """The lines that slice int32 tensors without the functions of `accelerators`.

    These are slices of step types, and of the arguments of functions that are given to
    `tf.nest.map_structure`: frames and time steps have such leaves. Functions of other
    modules are not looked into.
    """
    tree = ast.parse(source)
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
            if node.value.attr in ("step_type", "next_step_type"):
                lines.add(node.lineno)
        elif isinstance(node, ast.Call) and (
            ast.unparse(node.func) == "tf.nest.map_structure"
        ):
            function = node.args[0]
            name = ast.unparse(function).rpartition(".")[2]
            function = functions.get(name, function)
            if not isinstance(function, ast.FunctionDef | ast.Lambda):
                continue
            arguments = {argument.arg for argument in function.args.args}
            lines |= {
                inner.lineno
                for inner in ast.walk(function)
                if isinstance(inner, ast.Subscript)
                and isinstance(inner.value, ast.Name)
                and inner.value.id in arguments
            }
    return sorted(lines)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("frames.step_type[:, 1:]", [1]),
        ("tf.nest.map_structure(lambda t: t[:, 0], frames)", [1]),
        ("def part(t):\n  return t[0]\ntf.nest.map_structure(part, frames)", [2]),
        ("class A:\n def f(self, t): t[0]\ntf.nest.map_structure(self.f, x)", [2]),
        ("accelerators.map_moved(lambda t: t[:, 0], frames)", []),
        ("tf.nest.map_structure(lambda t: moved(lambda x: x[0], t), frames)", []),
        ("tf.nest.map_structure(lambda t: tf.shape(t)[0], frames)", []),
        ("tf.nest.map_structure(tf.zeros_like, frames)\nframes.reward[:, 0]", []),
    ],
)
def test_the_search_for_slices_finds(source, expected):
    assert bypassing(source) == expected


def test_loops_slice_integers_by_accelerators():
    found = {
        path.relative_to(ROOT).as_posix(): lines
        for path in SLICING
        if (lines := bypassing(path.read_text()))
    }
    assert found == {}, "use map_moved of tfrl.compilation.accelerators, as docs/gpu.md"
