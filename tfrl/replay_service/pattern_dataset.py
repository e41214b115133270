"""Creates datasets of trajectories from datasets of steps, with patterns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
import tree

from tfrl.replay_service import structured_writer
from tfrl.replay_service.patterns import configs as patterns
from tfrl.replay_service.replay_sample import ReplaySample, SampleInfo


class PatternDataset(tf.data.Dataset):
    """A dataset of the trajectories that a structured writer would create from steps.

    The trajectories have the order of the writer's items. TensorFlow operations do all
    the work, and no data is copied before a trajectory is created.
    """

    def __init__(
        self,
        input_dataset: tf.data.Dataset,
        configs: Sequence[patterns.Config],
        respect_episode_boundaries: bool,
        is_end_of_episode: Callable[[Any], Any],
    ) -> None:
        """Creates a dataset.

        Args:
          input_dataset: A dataset of steps, episode after episode.
          configs: The configs of the trajectories. All configs must have the same table
            and the same structure of patterns. The table and the priorities have no
            effect.
          respect_episode_boundaries: Whether trajectories end at the ends of episodes.
          is_end_of_episode: Takes a step; returns whether it is the last of its
            episode.

        Raises:
          ValueError: If a config cannot create trajectories or uses an unsuitable leaf,
            if the configs do not fit together, or if `is_end_of_episode` does not
            return one boolean.
        """
        patterns.check_configs(configs)
        self._input_dataset = input_dataset
        signature = structured_writer.infer_signature(
            configs, input_dataset.element_spec
        )
        self._element_spec = tree.map_structure(
            lambda spec: tf.TensorSpec(spec.shape, spec.dtype),
            _lists_as_tuples(signature),
        )
        maker = _Maker(input_dataset.element_spec, configs, self._element_spec)

        def add(state: _State, step: Any) -> tuple[_State, _Due]:
            # A tuple becomes several arguments, as in `tf.data.Dataset.map`.
            arguments = step if type(step) is tuple else (step,)
            is_end = _as_boolean(is_end_of_episode(*arguments))
            return maker.add(state, step, is_end, respect_episode_boundaries)

        dataset = input_dataset.scan(maker.initial_state(), add)
        dataset = dataset.unbatch().map(maker.trajectory)
        super().__init__(tf.data.experimental.to_variant(dataset))

    @property
    def element_spec(self) -> Any:
        """The specs of a trajectory, as a nest like the patterns, without lists."""
        return self._element_spec

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._input_dataset]


def pattern_dataset_with_info(
    input_dataset: tf.data.Dataset,
    configs: Sequence[patterns.Config],
    respect_episode_boundaries: bool,
    is_end_of_episode: Callable[[Any], Any],
) -> tf.data.Dataset:
    """Returns a `PatternDataset` of `ReplaySample`s, whose info consists of zeros.

    Args:
      input_dataset: See `PatternDataset`.
      configs: See `PatternDataset`.
      respect_episode_boundaries: See `PatternDataset`.
      is_end_of_episode: See `PatternDataset`.
    """

    @tf.autograph.experimental.do_not_convert
    def as_sample(*data: Any) -> ReplaySample:
        info = SampleInfo(*[tf.zeros([], dtype) for dtype in SampleInfo.tf_dtypes()])
        is_tuple = type(dataset.element_spec) is tuple
        return ReplaySample(info=info, data=data if is_tuple else data[0])

    dataset = PatternDataset(
        input_dataset, configs, respect_episode_boundaries, is_end_of_episode
    )
    return dataset.map(as_sample)


class _State(NamedTuple):
    """The state of a dataset between two steps.

    Attributes:
      columns: For each column that patterns use, a tensor list of its recent steps.
      num_steps: The number of steps so far, int64. Step `i` is at `i % history`.
      buffer_length: The number of recent steps that patterns can use, int64.
      step_index: The number of steps of the episode so far, int64.
      applied_at: `num_steps` at the last trajectory of each config, int64 `[configs]`.
    """

    columns: tuple[tf.Tensor, ...]
    num_steps: tf.Tensor
    buffer_length: tf.Tensor
    step_index: tf.Tensor
    applied_at: tf.Tensor


class _Due(NamedTuple):
    """A trajectory to create, or several trajectories with a leading dimension.

    Attributes:
      config: The index of the config, int32.
      columns: `[columns]`, for each column that patterns use, a tensor list of its
        recent steps.
      num_steps: The number of steps so far, int64.
    """

    config: tf.Tensor
    columns: tf.Tensor
    num_steps: tf.Tensor


class _Maker:
    """Tracks the steps and creates trajectories from them."""

    def __init__(
        self, step_spec: Any, configs: Sequence[patterns.Config], trajectory_spec: Any
    ) -> None:
        """Checks that the configs fit the steps.

        Args:
          step_spec: The specs of the steps.
          configs: The configs of the trajectories.
          trajectory_spec: The specs of the trajectories.
        """
        # As in a writer, configs for ends of episodes come last.
        self._configs = sorted(configs, key=lambda config: config.is_for_ends_only)
        self._step_specs = tf.nest.flatten(step_spec)
        self._trajectory_spec = trajectory_spec
        self._history = patterns.history_length(configs)
        columns = {node.flat_source_index for c in configs for node in c.flat}
        self._columns = sorted(columns)
        for column in self._columns:
            self._check_column(column)
        for config in configs:
            for condition in config.conditions:
                self._check_condition(condition)

    def initial_state(self) -> _State:
        """Returns the state before the first step."""
        zero = tf.zeros([], tf.int64)
        return _State(
            columns=tuple(self._new_list(self._step_specs[i]) for i in self._columns),
            num_steps=zero,
            buffer_length=zero,
            step_index=zero,
            applied_at=tf.zeros([len(self._configs)], tf.int64),
        )

    @tf.autograph.experimental.do_not_convert
    def add(
        self, state: _State, step: Any, is_end: tf.Tensor, clear_at_end: bool
    ) -> tuple[_State, _Due]:
        """Returns the state after `step`, and the trajectories to create at this step.

        Args:
          state: The state before the step.
          step: The nest of the step.
          is_end: Whether the step is the last of its episode, a boolean.
          clear_at_end: Whether trajectories end at the ends of episodes.
        """
        leaves = tf.nest.flatten(step)
        index = tf.cast(state.num_steps % self._history, tf.int32)
        state = state._replace(
            columns=tuple(
                tf.raw_ops.TensorListSetItem(
                    input_handle=column, index=index, item=leaves[i]
                )
                for column, i in zip(state.columns, self._columns, strict=True)
            ),
            num_steps=state.num_steps + 1,
            buffer_length=tf.minimum(state.buffer_length + 1, self._history),
        )
        is_due = tf.stack(
            [
                self._is_due(config, state, state.applied_at[i], leaves, is_end)
                for i, config in enumerate(self._configs)
            ]
        )
        due = tf.cast(tf.where(is_due), tf.int32)[:, 0]
        copies = tf.zeros_like(due)
        columns, num_steps = tf.stack(state.columns), state.num_steps
        zero = tf.zeros([], tf.int64)
        state = state._replace(
            step_index=tf.where(is_end, zero, state.step_index + 1),
            applied_at=tf.where(is_due, state.num_steps, state.applied_at),
        )
        if clear_at_end:
            length = tf.where(is_end, zero, state.buffer_length)
            state = state._replace(buffer_length=length)
        return state, _Due(
            config=due,
            columns=tf.gather(tf.stack([columns]), copies),
            num_steps=tf.gather([num_steps], copies),
        )

    @tf.autograph.experimental.do_not_convert
    def trajectory(self, due: _Due) -> Any:
        """Creates a trajectory, and returns it as a nest of tensors."""
        branches = [
            functools.partial(self._leaves, config, due) for config in self._configs
        ]
        flat = tf.switch_case(due.config, branches)
        specs = tree.flatten(self._trajectory_spec)
        for leaf, spec in zip(flat, specs, strict=True):
            leaf.set_shape(spec.shape)
        return tree.unflatten_as(self._trajectory_spec, flat)

    def _is_due(
        self,
        config: patterns.Config,
        state: _State,
        applied_at: tf.Tensor,
        leaves: Sequence[tf.Tensor],
        is_end: tf.Tensor,
    ) -> tf.Tensor:
        holds = state.buffer_length >= patterns.history_length([config])
        for condition in config.conditions:
            if condition.step_index:
                value = state.step_index
            elif condition.steps_since_applied:
                value = state.num_steps - applied_at
            elif condition.buffer_length:
                value = state.buffer_length
            elif condition.is_end_episode:
                value = tf.cast(is_end, tf.int64)
            else:
                assert condition.flat_source_index is not None
                leaf = leaves[condition.flat_source_index]
                value = tf.cast(tf.reshape(leaf, []), tf.int64)
            holds &= condition.holds(value)
        return holds

    def _leaves(self, config: patterns.Config, due: _Due) -> list[tf.Tensor]:
        leaves = []
        for node in config.flat:
            spec = self._step_specs[node.flat_source_index]
            steps = tf.raw_ops.TensorListGather(
                input_handle=due.columns[self._columns.index(node.flat_source_index)],
                indices=tf.cast(
                    (due.num_steps - list(node.ages)) % self._history, tf.int32
                ),
                element_shape=_shape_of_list(spec),
                element_dtype=spec.dtype,
            )
            leaves.append(steps[0] if node.is_squeezed else steps)
        return leaves

    def _new_list(self, spec: tf.TensorSpec) -> tf.Tensor:
        with tf.device("CPU:0"):
            return tf.raw_ops.TensorListReserve(
                element_shape=_shape_of_list(spec),
                num_elements=self._history,
                element_dtype=spec.dtype,
            )

    def _check_column(self, column: int) -> None:
        spec = self._step_specs[column]
        if not isinstance(spec, tf.TensorSpec):
            raise ValueError(
                f"configs: a pattern uses leaf {column} of the steps, which is {spec}, "
                "expected a tf.TensorSpec; make it dense first."
            )

    def _check_condition(self, condition: patterns.Condition) -> None:
        column = condition.flat_source_index
        if column is None:
            return
        if column >= len(self._step_specs):
            raise ValueError(
                f"configs: a condition uses leaf {column} (from 0) of the steps, which "
                f"have {len(self._step_specs)}; make conditions from a structure like "
                "the steps'."
            )
        spec = self._step_specs[column]
        is_number = spec.dtype.is_integer or spec.dtype.is_bool
        if not is_number or spec.shape.num_elements() not in (1, None):
            raise ValueError(
                f"configs: a condition uses leaf {column} of the steps, which is "
                f"{spec}, expected a single integer or boolean; add such a leaf to "
                "the steps."
            )


@tf.autograph.experimental.do_not_convert
def _as_boolean(value: Any) -> tf.Tensor:
    value = tf.convert_to_tensor(value)
    if value.dtype != tf.bool or not value.shape.is_compatible_with([]):
        raise ValueError(
            "Invalid `is_end_of_episode`. `is_end_of_episode` must return `bool`, but "
            f"its return type is {tf.TensorSpec(value.shape, value.dtype)}. Return a "
            "comparison, or one element."
        )
    return value


def _shape_of_list(spec: tf.TensorSpec) -> tf.Tensor:
    if spec.shape.rank is None:
        return tf.constant(-1, tf.int32)
    sizes = [-1 if size is None else size for size in spec.shape]
    return tf.constant(sizes, tf.int32, shape=[len(sizes)])


def _lists_as_tuples(nest: Any) -> Any:
    """Replaces lists by tuples, because datasets convert lists to tensors."""
    return tree.traverse(
        lambda part: tuple(part) if isinstance(part, list) else None,
        nest,
        top_down=False,
    )
