"""Datasets of trajectories from datasets of steps."""

import copy
import random
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tfrl.replay_service import replay_sample, structured_writer
from tfrl.replay_service.pattern_dataset import (
    PatternDataset,
    pattern_dataset_with_info,
)
from tfrl.replay_service.patterns import configs as patterns
from tfrl.replay_service.structured_writer import Condition, create_config

ENDS = [False, False, False, True, False, False, True]
STRUCTURE = {"a": 0, "b": 0, "end": False}


def make_steps():
    steps = {"a": np.arange(7), "b": 10 * np.arange(7), "end": ENDS}
    return tf.data.Dataset.from_tensor_slices(steps)


def is_end(step):
    return step["end"]


REFERENCE = structured_writer.create_reference_step(STRUCTURE)
PAIRS = create_config({"pair": REFERENCE["a"][-2:]}, "table")
ENDINGS = create_config(
    {"pair": REFERENCE["a"][-3:]}, "table", [Condition.is_end_episode()]
)


def values_of(dataset):
    return [tf.nest.map_structure(lambda x: x.numpy().tolist(), x) for x in dataset]


def pairs_of(dataset):
    return [trajectory["pair"] for trajectory in values_of(dataset)]


def test_trajectories_keep_to_episodes_or_go_over_their_ends():
    kept = PatternDataset(make_steps(), [PAIRS], True, is_end)
    assert pairs_of(kept) == [[0, 1], [1, 2], [2, 3], [4, 5], [5, 6]]
    over = PatternDataset(make_steps(), [PAIRS], False, is_end)
    assert pairs_of(over) == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6]]


def test_an_episodes_end_comes_after_its_last_step():
    dataset = PatternDataset(make_steps(), [ENDINGS, PAIRS], True, is_end)
    expected = [[0, 1], [1, 2], [2, 3], [1, 2, 3], [4, 5], [5, 6], [4, 5, 6]]
    assert pairs_of(dataset) == expected


def test_it_starts_anew_every_time():
    dataset = PatternDataset(make_steps(), [PAIRS], False, is_end)
    first = iter(dataset)
    next(first)
    assert len(pairs_of(dataset)) == 6
    assert next(first)["pair"].numpy().tolist() == [1, 2]
    assert len(pairs_of(dataset.repeat(2))) == 12


def test_the_elements_spec_is_static_and_holds_in_graphs():
    dataset = PatternDataset(make_steps(), [PAIRS], True, is_end)
    assert isinstance(dataset, tf.data.Dataset)
    assert dataset.element_spec == {"pair": tf.TensorSpec([2], tf.int64)}

    @tf.function
    def sums():
        steps = tf.data.Dataset.range(5).map(lambda i: {"a": i, "b": i, "end": i < 0})
        inside = PatternDataset(steps, [PAIRS], True, is_end)
        batches = inside.batch(2, drop_remainder=True).prefetch(1)
        assert batches.element_spec["pair"].shape == [2, 2]
        return batches.reduce(tf.zeros([2, 2], tf.int64), lambda x, y: x + y["pair"])

    assert sums().numpy().tolist() == [[0 + 2, 1 + 3], [1 + 3, 2 + 4]]


def test_a_first_dimension_that_configs_differ_in_is_none():
    dataset = PatternDataset(make_steps(), [PAIRS, ENDINGS], True, is_end)
    assert dataset.element_spec == {"pair": tf.TensorSpec([None], tf.int64)}


class Step(NamedTuple):
    observation: tf.Tensor
    reward: tf.Tensor


def test_steps_and_patterns_may_be_any_nests():
    steps = tf.data.Dataset.from_tensor_slices(
        ((np.ones([4, 2], np.uint8), np.arange(4.0)), [0, 0, 1, 0])
    )
    reference = structured_writer.create_reference_step(((0, 0), 0))
    config = create_config(
        Step(observation=[reference[0][0][-1]], reward=reference[0][1][-3::2]), "table"
    )
    dataset = PatternDataset(steps, [config], False, lambda step, end: end == 1)
    assert dataset.element_spec == Step(
        observation=(tf.TensorSpec([2], tf.uint8),),
        reward=tf.TensorSpec([2], tf.float64),
    )
    assert values_of(dataset) == [Step(([1, 1],), [0, 2]), Step(([1, 1],), [1, 3])]


def test_a_pattern_may_be_one_leaf():
    reference = structured_writer.create_reference_step(None)
    steps = tf.data.Dataset.range(3)
    config = create_config(reference[-1], "table", [Condition.step_index() >= 1])
    assert values_of(PatternDataset(steps, [config], True, lambda _: False)) == [1, 2]


def test_steps_of_unknown_shapes_make_trajectories():
    reference = structured_writer.create_reference_step(None)
    steps = tf.data.Dataset.from_generator(
        lambda: iter([[1, 2], [3, 4], [5, 6]]),
        output_signature=tf.TensorSpec([None], tf.int32),
    )
    config = create_config(reference[-2:], "table")
    dataset = PatternDataset(steps, [config], True, lambda _: False)
    assert dataset.element_spec.shape.as_list() == [2, None]
    assert values_of(dataset) == [[[1, 2], [3, 4]], [[3, 4], [5, 6]]]


def test_configs_are_left_as_they_were():
    config = copy.deepcopy(PAIRS)
    PatternDataset(make_steps(), [config], True, is_end)
    assert config == PAIRS


def test_samples_have_an_info_of_zeros():
    dataset = pattern_dataset_with_info(make_steps(), [PAIRS], True, is_end)
    spec = dataset.element_spec
    dtypes = replay_sample.SampleInfo.tf_dtypes()
    assert [leaf.dtype for leaf in spec.info] == list(dtypes)
    first = next(iter(dataset))
    assert first.info == replay_sample.SampleInfo.zeros()
    assert first.data["pair"].numpy().tolist() == [0, 1]


@pytest.mark.parametrize(
    ("is_end_of_episode", "spec"),
    [
        (lambda step: step["a"], r"TensorSpec\(shape=\(\), dtype=tf.int64"),
        (lambda step: [step["end"]], r"TensorSpec\(shape=\(1,\), dtype=tf.bool"),
    ],
)
def test_an_end_is_one_boolean(is_end_of_episode, spec):
    with pytest.raises(ValueError, match=rf"must return `bool`, but.*{spec}"):
        PatternDataset(make_steps(), [PAIRS], True, is_end_of_episode)


def test_configs_must_fit_the_steps():
    steps = make_steps().map(lambda step: {**step, "b": 1.5})
    condition = Condition.data(STRUCTURE)["b"] > 1
    config = create_config({"pair": REFERENCE["a"][-1]}, "table", [condition])
    with pytest.raises(ValueError, match=r"leaf 1 of the steps, which is .*float32"):
        PatternDataset(steps, [config], True, is_end)
    condition = Condition.data([0] * 5)[4] > 1
    config = create_config({"pair": REFERENCE["a"][-1]}, "table", [condition])
    with pytest.raises(ValueError, match=r"uses leaf 4 .from 0. of the steps, which"):
        PatternDataset(steps, [config], True, is_end)
    config = create_config([REFERENCE["b"][-1]], "table")
    numbers = tf.data.Dataset.range(3)
    with pytest.raises(ValueError, match=r"got .*1 leaves, but the configs use leaf"):
        PatternDataset(numbers, [config], True, lambda _: False)
    with pytest.raises(ValueError, match="At least one config"):
        PatternDataset(steps, [], True, is_end)


def test_columns_must_be_dense():
    steps = tf.data.Dataset.range(3).map(
        lambda i: tf.ragged.range(i, row_splits_dtype=tf.int64)
    )
    config = create_config(structured_writer.create_reference_step(None)[-1:], "table")
    with pytest.raises(ValueError, match="make it dense first"):
        PatternDataset(steps, [config], True, lambda _: False)


class ListingWriter:
    """A trajectory writer that keeps its items and all steps."""

    def __init__(self):
        self.history = []
        self.items = []

    def append(self, data, *, partial_step):
        assert not partial_step
        self.history = self.history or [np.zeros(0, int) for _ in data]
        self.history = [
            np.append(x, y) for x, y in zip(self.history, data, strict=True)
        ]

    def create_item(self, table, priority, trajectory):
        self.items.append([column.tolist() for column in trajectory])

    def end_episode(self, clear_buffers, timeout_ms):
        pass


def random_config(rng, lengths):
    """Returns a config of two columns and perhaps a condition or two."""
    since = Condition.steps_since_applied()
    b = Condition.data(STRUCTURE)["b"]
    conditions = [
        Condition.step_index() % 2 == rng.randrange(2),
        Condition.step_index() >= rng.randrange(4),
        since >= rng.randrange(4),
        since % 3 != 1,
        since < 4,
        b == 1,
        b % 2 == 1,
        b % 2 != 0,
        patterns.Condition(buffer_length=True, ge=2),
        Condition.is_end_episode(),
    ]
    age, length, step = rng.randint(1, 3), rng.choice(lengths), rng.randint(1, 2)
    pattern = [REFERENCE["a"][-age], REFERENCE["b"][-length::step]]
    return create_config(pattern, "table", rng.sample(conditions, rng.randrange(3)))


@pytest.mark.parametrize("seed", range(4))
def test_it_makes_what_a_structured_writer_makes(seed):
    rng = random.Random(seed)
    configs = [random_config(rng, [1, 2, 4]) for _ in range(4)]
    steps = [
        {"a": i, "b": rng.randint(-3, 3), "end": rng.random() < 0.2} for i in range(60)
    ]
    clear = seed % 2 == 0
    recorder = ListingWriter()
    writer = structured_writer.StructuredWriter(recorder, configs)
    for step in steps:
        writer.append(step)
        if step["end"]:
            writer.end_episode(clear_buffers=clear)
    columns = {key: [step[key] for step in steps] for key in steps[0]}
    dataset = tf.data.Dataset.from_tensor_slices(columns)
    made = PatternDataset(dataset, configs, clear, is_end)
    assert recorder.items
    assert [list(x) for x in values_of(made)] == recorder.items
