"""Patterns, conditions, and the items that they make.

Items expected of a writer are those that Reverb 0.14 made of the same steps.
"""

import dataclasses
import re
import subprocess
import sys

import numpy as np
import pytest

from tfrl.replay_service import structured_writer
from tfrl.replay_service.patterns import configs as patterns
from tfrl.replay_service.structured_writer import Condition, create_config

STRUCTURE = {"a": None, "b": None}
STEPS = [{"a": i, "b": 10 * i} for i in range(6)]


class RecordingWriter:
    """A trajectory writer that keeps its items, and just as many steps as it must."""

    def __init__(self, num_keep_alive_refs):
        self.num_keep_alive_refs = num_keep_alive_refs
        self.columns = []
        self.items = []
        self.calls = []
        self.step_is_open = False

    def append(self, data, *, partial_step=False):
        if not self.columns:
            self.columns = [Column([]) for _ in data]
        for column, value in zip(self.columns, data, strict=True):
            if not self.step_is_open:
                column.steps = [*column.steps, value][-self.num_keep_alive_refs :]
            elif value is not None:
                if column.steps[-1] is not None:
                    raise ValueError("Field (0,) has already been set in this step.")
                column.steps[-1] = value
        self.step_is_open = partial_step

    @property
    def history(self):
        return self.columns

    def create_item(self, table, priority, trajectory):
        values = [column.numpy().tolist() for column in trajectory]
        self.items.append((table, priority, values))

    def flush(self, *arguments):
        self.calls.append(("flush", *arguments))

    def end_episode(self, clear_buffers, timeout_ms):
        self.calls.append(("end_episode", clear_buffers, timeout_ms))
        self.step_is_open = False
        if clear_buffers:
            self.columns = []


class Column:
    def __init__(self, steps, is_squeezed=False):
        self.steps = steps
        self.is_squeezed = is_squeezed

    def __getitem__(self, key):
        if isinstance(key, int):
            return Column([self.steps[key]], is_squeezed=True)
        return Column(self.steps[key])

    def numpy(self):
        assert self.steps
        assert all(step is not None for step in self.steps)
        return np.array(self.steps[0] if self.is_squeezed else self.steps)


def make_writer(*configs):
    recorder = RecordingWriter(patterns.history_length(configs))
    return structured_writer.StructuredWriter(recorder, configs), recorder


def items_of(make_pattern, steps, conditions=(), priority=None):
    """Returns the values of the items made of `steps`.

    Those are steps, parts of steps as `(part, )`, and "end" or "go on" for an episode's
    end with and without clearing the buffers. The last is followed by an end.
    """
    reference = structured_writer.create_reference_step(STRUCTURE)
    config = create_config(make_pattern(reference), "table", conditions, priority)
    writer, recorder = make_writer(config)
    for step in steps:
        if isinstance(step, str):
            writer.end_episode(clear_buffers=step == "end")
        elif isinstance(step, tuple):
            writer.append(step[0], partial_step=True)
        else:
            writer.append(step)
    writer.end_episode()
    return [values if len(values) > 1 else values[0] for _, _, values in recorder.items]


def newest(reference):
    return [reference["a"][-1]]


@pytest.mark.parametrize(
    ("make_pattern", "expected"),
    [
        (lambda ref: [ref["a"][-1]], [0, 1, 2, 3, 4, 5]),
        (lambda ref: [ref["a"][:-2]], [0, 1, 2, 3, 4]),  # As [-2].
        (lambda ref: [ref["a"][-1:]], [[0], [1], [2], [3], [4], [5]]),
        (lambda ref: [ref["a"][-3:-1]], [[0, 1], [1, 2], [2, 3], [3, 4]]),
        (lambda ref: [ref["a"][-4::3]], [[0, 3], [1, 4], [2, 5]]),
        (lambda ref: [ref["a"][-5::2]], [[0, 2, 4], [1, 3, 5]]),
        (lambda ref: [ref["a"][-5:-1:2]], [[0, 2], [1, 3]]),
        (lambda ref: [ref["b"][-5], ref["a"][-1:]], [[0, [4]], [10, [5]]]),
        (lambda ref: {"y": ref["b"][-5], "x": ref["a"][-5]}, [[0, 0], [1, 10]]),
    ],
)
def test_patterns_choose_steps_once_there_are_enough(make_pattern, expected):
    assert items_of(make_pattern, STEPS) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition.step_index() == 3, [3]),
        (Condition.step_index() != 3, [0, 1, 2, 4, 5]),
        (Condition.step_index() > 3, [4, 5]),
        (Condition.step_index() >= 3, [3, 4, 5]),
        (Condition.step_index() < 3, [0, 1, 2]),
        (Condition.step_index() <= 3, [0, 1, 2, 3]),
        (Condition.step_index() % 3 == 1, [1, 4]),
        (Condition.step_index() % 3 != 1, [0, 2, 3, 5]),
        (Condition.steps_since_applied() >= 3, [2, 5]),
        (Condition.steps_since_applied() % 2 == 0, [1, 3, 5]),
        (Condition.is_end_episode(), [5]),
        (Condition.data(STRUCTURE)["b"] >= 40, [4, 5]),
        (Condition.data(STRUCTURE)["b"] % 20 == 0, [0, 2, 4]),
    ],
)
def test_a_condition_chooses_steps(condition, expected):
    assert items_of(newest, STEPS, [condition]) == expected


def test_all_conditions_must_hold():
    conditions = [Condition.step_index() >= 1, Condition.step_index() % 2 == 0]
    assert items_of(newest, STEPS, conditions) == [2, 4]


def test_steps_before_the_pattern_applies_count_as_since():
    def last_three(reference):
        return [reference["a"][-3:]]

    since = Condition.steps_since_applied()
    assert items_of(last_three, STEPS, [since >= 2]) == [[0, 1, 2], [2, 3, 4]]
    assert items_of(last_three, STEPS, [since == 2]) == []


@pytest.mark.parametrize("end", ["end", "go on"])
def test_steps_since_applied_go_on_over_episodes(end):
    steps = [*STEPS[:5], end, *STEPS]
    assert items_of(newest, steps, [Condition.steps_since_applied() >= 3]) == [2, 0, 3]


def test_buffer_length_grows_as_far_as_patterns_look_back():
    def last_three(reference):
        return [reference["a"][-1], reference["b"][-3:]]

    assert (
        len(items_of(last_three, STEPS, [patterns.Condition(buffer_length=True, ge=3)]))
        == 4
    )
    assert not items_of(
        last_three, STEPS, [patterns.Condition(buffer_length=True, ge=4)]
    )


def test_remainders_of_negative_values_are_as_in_c():
    steps = [{"a": i, "b": b} for i, b in enumerate([-3, -4, 3, 4])]
    value = Condition.data(STRUCTURE)["b"]
    assert items_of(newest, steps, [value % 2 == 1]) == [2]
    assert items_of(newest, steps, [value % 2 == 0]) == [1, 3]
    assert items_of(newest, steps, [value % 2 != 1]) == [0, 1, 3]


def test_booleans_and_single_integers_are_data_to_compare():
    steps = [{"a": i, "b": b} for i, b in enumerate([np.True_, False, [1], [[0]]])]
    steps = [{"a": s["a"], "b": np.array(s["b"])} for s in steps]
    assert items_of(newest, steps, [Condition.data(STRUCTURE)["b"] == 1]) == [0, 2]


@pytest.mark.parametrize("value", [1.0, np.zeros(2, int), "text"])
def test_other_data_cannot_be_compared(value):
    config = create_config(
        newest(structured_writer.create_reference_step(STRUCTURE)),
        "table",
        [Condition.data(STRUCTURE)["b"] == 1],
    )
    writer, recorder = make_writer(config)
    with pytest.raises(
        ValueError, match=r"column 1 \(path=\('b',\)\), which has dtype"
    ):
        writer.append({"a": 1, "b": np.array(value)})
    assert not recorder.columns, "the step was refused as a whole"


def test_items_of_an_episodes_end_are_made_before_it_ends():
    def last_three(reference):
        return [reference["a"][-3:]]

    steps = [*STEPS, "end", *STEPS[:2]]
    assert items_of(last_three, steps, [Condition.is_end_episode()]) == [[3, 4, 5]]


def test_items_look_back_over_an_end_without_clearing():
    def last_two(reference):
        return [reference["a"][-2:]]

    steps = [*STEPS[:3], "go on", *STEPS[3:]]
    assert items_of(last_two, steps, [Condition.step_index() == 0]) == [[2, 3]]
    assert items_of(last_two, steps, [Condition.is_end_episode()]) == [[1, 2], [4, 5]]
    steps[3] = "end"
    assert items_of(last_two, steps) == [[0, 1], [1, 2], [3, 4], [4, 5]]


def test_an_end_makes_items_of_the_last_step_once():
    steps = [STEPS[0], "go on", "go on"]
    assert items_of(newest, steps, [Condition.is_end_episode()]) == [0]
    assert items_of(newest, steps) == [0]


PARTS = [
    part
    for i in (1, 2, 3)
    for part in [({"a": i, "b": None},), {"a": None, "b": 10 * i}]
]


@pytest.mark.parametrize(
    ("make_pattern", "conditions", "expected"),
    [
        (lambda ref: [ref["a"][-2:]], [], [[1, 2], [2, 3]]),
        (lambda ref: [ref["b"][-2], ref["a"][-1]], [], [[10, 2], [20, 3]]),
        (lambda ref: [ref["b"][-2:]], [], [[10, 20], [20, 30]]),
        (newest, [Condition.step_index() >= 1], [2, 3]),
        (
            lambda ref: [ref["a"][-1], ref["b"][-1]],
            [Condition.steps_since_applied() >= 2],
            [[2, 20]],
        ),
        (newest, [Condition.data(STRUCTURE)["b"] >= 20], [2, 3]),
        (newest, [Condition.data(STRUCTURE)["b"] != 20], [1, 3]),
    ],
)
def test_parts_of_steps_make_items_as_soon_as_they_can(
    make_pattern, conditions, expected
):
    assert items_of(make_pattern, PARTS, conditions) == expected


def test_an_item_is_made_before_its_step_is_complete():
    reference = structured_writer.create_reference_step(STRUCTURE)
    writer, recorder = make_writer(create_config(newest(reference), "table"))
    writer.append({"a": 1, "b": None}, partial_step=True)
    assert len(recorder.items) == 1
    writer.append({"a": None, "b": 10})
    assert len(recorder.items) == 1


def test_steps_without_a_value_make_no_items():
    def last_two(reference):
        return [reference["a"][-2:]]

    steps = [{"a": a, "b": 0} for a in (1, None, 3, 4)]
    assert items_of(last_two, steps) == [[3, 4]]


def test_steps_without_any_value_count_for_the_index_only():
    steps = [{"a": a, "b": 0} for a in (None, None, 3, 4, 5)]
    assert items_of(newest, steps, [Condition.step_index() >= 3]) == [4, 5]
    assert items_of(newest, steps, [Condition.steps_since_applied() >= 3]) == [5]


def test_step_is_open_until_it_is_completed_or_the_episode_ends():
    reference = structured_writer.create_reference_step(STRUCTURE)
    writer, _ = make_writer(create_config(newest(reference), "table"))
    seen = [writer.step_is_open]
    writer.append({"a": 1, "b": 1})
    seen.append(writer.step_is_open)
    writer.append({"a": None, "b": 2}, partial_step=True)
    seen.append(writer.step_is_open)
    writer.append({"a": 2, "b": None})
    seen.append(writer.step_is_open)
    writer.append({"a": None, "b": 3}, partial_step=True)
    writer.end_episode()
    seen.append(writer.step_is_open)
    assert seen == [False, False, True, False, False]


def test_configs_make_their_items_in_order_and_for_their_tables():
    reference = structured_writer.create_reference_step(None)
    writer, recorder = make_writer(
        create_config(reference[-1], "last", [Condition.step_index() % 2 == 0]),
        create_config(
            reference[-2:], "pairs", [], structured_writer.constant_priority_fn(2.5)
        ),
    )
    for step in range(3):
        writer.append(step)
    assert recorder.items == [
        ("last", 1.0, [0]),
        ("pairs", 2.5, [[0, 1]]),
        ("last", 1.0, [2]),
        ("pairs", 2.5, [[1, 2]]),
    ]


def test_only_columns_of_patterns_are_written():
    reference = structured_writer.create_reference_step([None, None, None])
    config = create_config(
        [reference[2][-1]], "table", [Condition.data([0, 0, 0])[0] > 0]
    )
    writer, recorder = make_writer(config)
    writer.append([1, np.zeros(1000), 7])
    assert [column.steps for column in recorder.columns] == [[7]]
    assert recorder.items == [("table", 1.0, [7])]


@pytest.mark.parametrize(
    ("make_pattern", "expected"),
    [
        (lambda ref: [ref["a"][-1], ref["b"][-2:]], [2.3, 1.3]),
        (lambda ref: [ref["b"][-1]], [2.5, 1.5, 0.5]),
        (lambda ref: [ref["b"][-1], ref["b"][-3:]], [0.6 * 2.5 + 0.4 * 1.5]),
    ],
)
def test_td_errors_make_priorities_of_their_maximum_and_mean(make_pattern, expected):
    priority = structured_writer.td_error(0.6, STRUCTURE, lambda step: step["b"])
    reference = structured_writer.create_reference_step(STRUCTURE)
    writer, recorder = make_writer(
        create_config(make_pattern(reference), "table", priority=priority)
    )
    for i in range(3):
        writer.append({"a": i, "b": np.float32(i - 2.5)})
    assert [item[1] for item in recorder.items] == pytest.approx(expected, rel=1e-6)


def test_td_errors_are_one_number_a_step():
    priority = structured_writer.td_error(0.6, STRUCTURE, lambda step: step["b"])
    reference = structured_writer.create_reference_step(STRUCTURE)
    config = create_config([reference["b"][-2:]], "table", priority=priority)
    writer, _ = make_writer(config)
    writer.append({"a": 0, "b": np.zeros(2)})
    with pytest.raises(ValueError, match=r"column 1 of the steps has shape \(2,\)"):
        writer.append({"a": 0, "b": np.zeros(2)})


def test_flush_and_end_episode_pass_on_their_arguments():
    reference = structured_writer.create_reference_step(None)
    writer, recorder = make_writer(create_config(reference[-1], "table"))
    writer.flush()
    writer.flush(3, timeout_ms=7)
    writer.end_episode()
    writer.end_episode(clear_buffers=False, timeout_ms=5)
    assert recorder.calls == [
        ("flush", 0, None),
        ("flush", 3, 7),
        ("end_episode", True, None),
        ("end_episode", False, 5),
    ]


def test_the_number_of_leaves_must_not_change():
    reference = structured_writer.create_reference_step(STRUCTURE)
    writer, _ = make_writer(create_config(newest(reference), "table"))
    writer.append({"a": 1, "b": 1})
    with pytest.raises(ValueError, match="length, got 1 but wanted 2"):
        writer.append({"a": 1})


def test_configs_must_fit_the_data():
    reference = structured_writer.create_reference_step(STRUCTURE)
    writer, _ = make_writer(create_config([reference["b"][-1]], "table"))
    with pytest.raises(ValueError, match=r"got .*1 leaves, but the configs use leaf 1"):
        writer.append({"a": 1})


def test_a_trajectory_writers_refusal_names_the_leaf():
    reference = structured_writer.create_reference_step({"b": {"c": 0}, "a": 0})
    writer, _ = make_writer(create_config([reference["b"]["c"][-1]], "table"))
    writer.append({"b": {"c": 1}, "a": 1}, partial_step=True)
    with pytest.raises(ValueError, match=r"Field 1 \(path=\('b', 'c'\)\) has already"):
        writer.append({"b": {"c": 1}, "a": None})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (0, "`stop` must be < 0 when `start` isn't set but got 0"),
        (1, "`stop` must be <= 0 but got 1"),
        (slice(0, None), "`start` must be < 0 but got 0"),
        (slice(-2, -3), r"`stop` \(-3\) must be > `start` \(-2\) when both"),
        (slice(-2, 1), "`stop` must be <= 0 but got 1"),
        (slice(None), "At least one of `start` and `stop` must be specified"),
        (slice(-3, None, 0), "`step` must be > 0 but got 0"),
        (slice(None, -1, 2), "`step` must only be set when `start` is set"),
        ("x", "Key must be int or slice but got x"),
        ([-1], "Key must be int or slice"),
    ],
)
def test_a_reference_is_indexed_backwards(key, text):
    reference = structured_writer.create_reference_step(STRUCTURE)
    with pytest.raises(ValueError, match=text):
        reference["a"][key]


def test_a_wrong_index_names_the_leaf_and_the_remedy():
    reference = structured_writer.create_reference_step({"b": {"c": 0}})
    with pytest.raises(
        ValueError, match=r"path \('b', 'c'\).*\[-1\] is the newest step"
    ):
        reference["b"]["c"][0]


def test_configs_that_make_no_items_are_refused():
    reference = structured_writer.create_reference_step(None)
    good = create_config(reference[-1], "table")
    with pytest.raises(ValueError, match="At least one config"):
        structured_writer.StructuredWriter(RecordingWriter(1), [])
    for config, text in [
        (create_config({}, "table"), "position 1: `flat` must not be empty"),
        (create_config(reference[-1], ""), "position 1: `table` must not be empty"),
        (
            create_config(
                {"x": structured_writer.create_reference_step([0, 0])[0][-1]},
                "table",
                priority=structured_writer.td_error(1.0, [0, 0], lambda step: step[1]),
            ),
            "uses column 1, but the pattern only has the columns [0]",
        ),
    ]:
        with pytest.raises(ValueError, match=re.escape(text)):
            structured_writer.StructuredWriter(RecordingWriter(1), [good, config])


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda x: x % 0 == 0, ValueError, "`mod_eq.mod` must be > 0 but got 0"),
        (lambda x: x % 2 == -1, ValueError, "`mod_eq.eq` must be >= 0 but got -1"),
        (lambda x: x % 2 >= 1, ValueError, "modulo 2 was compared with <, <=, > or >="),
        (lambda x: x <= 3.5, TypeError, "float"),
    ],
)
def test_comparisons_that_cannot_be_meant_are_refused(make, error, text):
    with pytest.raises(error, match=text):
        make(Condition.step_index())


def test_what_is_no_pattern_or_no_condition_is_refused():
    reference = structured_writer.create_reference_step(None)
    with pytest.raises(TypeError, match=r"got 1 at path \('x',\), expected"):
        create_config({"x": 1}, "table")
    with pytest.raises(TypeError, match="expected a comparison"):
        create_config(reference[-1], "table", [Condition.step_index()])


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_priorities_are_finite_and_not_below_zero(value):
    with pytest.raises(ValueError, match="must be finite and >= 0 but got"):
        structured_writer.constant_priority_fn(value)
    with pytest.raises(ValueError, match="must be finite and >= 0 but got"):
        structured_writer.td_error(value, None, lambda step: step)


def test_a_config_can_be_taken_apart_and_put_together():
    pattern = structured_writer.pattern_from_transform(
        {"a": 0, "b": (0, 0)},
        lambda step: {"y": (step["b"][1][-1],), "x": step["a"][-3::2]},
    )
    config = create_config(pattern, "table", [Condition.step_index() > 1])
    assert config.table == "table"
    assert config.priority.constant_fn.value == 1.0
    assert config.conditions == [patterns.Condition(step_index=True, ge=2)]
    assert config.flat == [
        patterns.PatternNode(0, start=-3, step=2),
        patterns.PatternNode(2, stop=-1),
    ]
    assert structured_writer.unpack_pattern(config) == pattern
    assert dataclasses.replace(config, table="other").flat == config.flat


def infer(step_spec, *made, table="table"):
    reference = structured_writer.create_reference_step(step_spec)
    configs = [create_config(make(reference), table) for make in made]
    return structured_writer.infer_signature(configs, step_spec)


def test_signatures_have_the_items_shapes_dtypes_and_names():
    import tensorflow as tf

    spec = {"a": np.zeros([3], np.float32), "b": {"c": tf.TensorSpec([], tf.int32)}}
    assert infer(
        spec,
        lambda ref: {
            "last": ref["a"][-1],
            "older": (ref["a"][-3:-1],),
            "strided": ref["b"]["c"][-4::3],
        },
    ) == {
        "last": tf.TensorSpec([3], tf.float32, "last"),
        "older": (tf.TensorSpec([2, 3], tf.float32, "older/0"),),
        "strided": tf.TensorSpec([2], tf.int32, "strided"),
    }


def test_a_first_dimension_that_configs_differ_in_is_none():
    spec = {"a": np.zeros([3], np.float32)}
    signature = infer(spec, lambda ref: [ref["a"][-3:]], lambda ref: [ref["a"][-2:]])
    assert signature[0].shape.as_list() == [None, 3]


def test_configs_of_one_table_must_agree():
    spec = {"a": np.zeros([3], np.float32), "b": np.zeros([3], np.int32)}
    with pytest.raises(ValueError, match="exactly the same pattern_structure"):
        infer(spec, lambda ref: [ref["a"][-1]], lambda ref: {"x": ref["a"][-1]})
    with pytest.raises(ValueError, match=r"multiple dtypes at \('x',\)"):
        infer(spec, lambda ref: {"x": ref["a"][-1]}, lambda ref: {"x": ref["b"][-1]})
    with pytest.raises(ValueError, match=r"incompatible shapes at \('x',\)"):
        infer(spec, lambda ref: {"x": ref["a"][-1]}, lambda ref: {"x": ref["a"][-1:]})
    reference = structured_writer.create_reference_step(None)
    configs = [create_config(reference[-1], table) for table in "ba"]
    with pytest.raises(ValueError, match=r"provided configs included a, b\."):
        structured_writer.infer_signature(configs, np.zeros(3))
    with pytest.raises(ValueError, match="At least one config"):
        structured_writer.infer_signature([], np.zeros(3))


def test_tensorflow_is_not_imported():
    code = (
        "import sys; import tfrl.replay_service.structured_writer; "
        "sys.exit('tensorflow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_server_gets_the_items(start_server):
    import tfrl.replay_service as reverb

    server = start_server([reverb.Table.queue("table", 10)])
    client = server.localhost_client()
    reference = structured_writer.create_reference_step(STRUCTURE)
    pair = create_config(
        {"old": reference["a"][-2], "both": reference["a"][-2:]},
        "table",
        [Condition.data(STRUCTURE)["b"] != 20],
        structured_writer.constant_priority_fn(0.5),
    )
    with pytest.raises(ValueError, match="At least one config must be provided"):
        client.structured_writer([])
    writer = client.structured_writer([pair])
    for step in STEPS[:4]:
        writer.append(step)
    with pytest.raises(ValueError, match=r"column 0 \(path=\('a',\)\). Got double but"):
        writer.append({"a": 1.5, "b": 0})
    writer.end_episode()
    samples = client.sample("table", num_samples=2, emit_timesteps=False)
    found = [
        ([column.tolist() for column in sample.data], sample.info.priority)
        for sample in samples
    ]
    assert found == [([[0, 1], 0], 0.5), ([[2, 3], 2], 0.5)]
