"""Measurements of an agent's training: of its parts, units, experience and actions.

They are for a run's log. Measuring changes nothing. `Summaries` are written in training
itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfrl import losses
from tfrl.agents import updates
from tfrl.compilation import internals
from tfrl.trajectories import trajectory
from tfrl.utils import summaries
from tfrl.utils.optimization import schedules

if TYPE_CHECKING:
    from tfrl.typing import types

# Sokar et al., "The dormant neuron phenomenon in deep reinforcement learning" (2023),
# section 3: a unit is dormant if its mean size is at most this share of its layer's.
_DORMANT = 0.025
# An action counts as at a bound within this share of its range.
_NEAR = 1e-3


@dataclasses.dataclass(frozen=True)
class Summaries:
    """The summaries that an agent writes for TensorBoard in each update.

    Attributes:
      step: The number of updates so far.
      enabled: Whether anything is written.
      debug: Whether there are histograms of the parts of the loss.
      weights: Whether there are histograms of gradients and variables.
    """

    step: tf.Variable
    enabled: bool
    debug: bool
    weights: bool

    def write_losses(
        self,
        total_loss: tf.Tensor,
        values: Mapping[str, Any],
        histograms: Mapping[str, tf.Tensor] | None = None,
    ) -> None:
        """Writes the losses, and in debug mode histograms.

        Args:
          total_loss: The loss.
          values: Numbers by name; in debug mode, tensors that are not scalars become
            histograms with the prefix "loss/".
          histograms: Further histograms of the debug mode, by name.
        """
        if not self.enabled:
            return
        scalars = {
            k: v for k, v in values.items() if not tf.is_tensor(v) or v.shape.rank == 0
        }
        summaries.summarize_scalar_dict(
            {**scalars, "total_loss": total_loss}, step=self.step
        )
        if self.debug:
            others = {f"loss/{k}": v for k, v in values.items() if k not in scalars}
            summaries.summarize_tensor_dict(others, step=self.step)
            if histograms:
                summaries.summarize_histogram_dict(histograms, self.step)

    def write_gradients(
        self, gradients: Sequence[Any], trained: Sequence[Any], untrained: Sequence[Any]
    ) -> None:
        """Writes histograms of gradients, of their variables, and of further ones."""
        if not (self.enabled and self.weights):
            return
        pairs = list(zip(gradients, trained, strict=True))
        summaries.add_variables_summaries(
            [*pairs, *((None, v) for v in untrained)], self.step
        )
        summaries.add_gradients_summaries(pairs, self.step)


def of_values(
    values: tf.Tensor, td_error: tf.Tensor, valid: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Returns `q_value`, `td_error` and `explained_variance`.

    These are the mean value of the actions taken, the mean size of the errors of these
    values, and the share of the targets' variance that the values explain.

    Args:
      values: The values, `[B]` or `[B, T]`.
      td_error: The targets minus the values, like `values`.
      valid: Whether each counts, like `values`.
    """
    return {
        "q_value": losses.masked_mean(values, valid),
        "td_error": losses.masked_mean(tf.abs(td_error), valid),
        "explained_variance": losses.explained_variance(
            values, values + td_error, valid
        ),
    }


def of_exploration(**schedules_or_numbers: Any) -> dict[str, tf.Tensor]:
    """Returns current values by name, without those that are None.

    Args:
      **schedules_or_numbers: Numbers, functions, schedules or None, such as `epsilon`.
    """
    now = {k: schedules.current_value(x) for k, x in schedules_or_numbers.items()}
    return {k: tf.cast(x, tf.float32) for k, x in now.items() if x is not None}


def learning_rates(parts: Sequence[updates.Part]) -> dict[str, tf.Tensor]:
    """Returns the learning rate of each part that has one, by name."""
    rates = {_prefix(part, parts): part.optimizer.learning_rate() for part in parts}
    return {f"{x}learning_rate": rate for x, rate in rates.items() if rate is not None}


def of_parts(
    parts: Sequence[tuple[updates.Part, updates.Batch]],
) -> dict[str, tf.Tensor]:
    """Returns the norm of each part's gradient, and the shares of dormant units.

    Args:
      parts: The parts in the order of an update, each with its batch.
    """
    all_parts = [part for part, _ in parts]
    numbers: dict[str, tf.Tensor] = {}
    details = dict(parts[0][1].details)
    units = Units()
    with units.recorded([module for part in all_parts for module in part.trained]):
        for part, own in parts:
            norm, new = part.gradient_norm(own._replace(details=dict(details)))
            numbers[f"{_prefix(part, all_parts)}gradient_norm"] = norm
            details |= new
    return numbers | units.dormant()


def weights_by_name(
    parts: Sequence[updates.Part], targets: Sequence[tf.Module]
) -> dict[str, list[Any]]:
    """Returns the weights that each part trains, and those of the target networks."""
    found: dict[str, list[Any]] = {
        f"{_prefix(part, parts)}weights": part.trained_variables() for part in parts
    }
    followers = [
        variable
        for target in targets
        for variable in target.variables
        if tf.as_dtype(variable.dtype).is_floating  # Not a seed of dropout.
    ]
    return found | ({"target_weights": followers} if followers else {})


def _prefix(part: updates.Part, parts: Sequence[updates.Part]) -> str:
    """Returns the prefix of a part's numbers in the log."""
    is_main = part.label == "critic" or len(parts) == 1
    return "" if is_main else f"{part.label}_"


class Units:
    """The sizes of hidden units, which `recorded` collects."""

    def __init__(self) -> None:
        """Begins without units."""
        # The mean size of each unit, [n], by layer: one for each call.
        self._sizes: dict[int, list[tf.Tensor]] = {}

    @contextlib.contextmanager
    def recorded(self, modules: Sequence[Any]) -> Iterator[None]:
        """Records the hidden units of networks that are applied in this context.

        Layers with an activation record its output.
        """
        changed = [
            (layer, layer.activation)
            for module in modules
            if isinstance(module, keras.layers.Layer)
            for layer in internals.flatten_layers(module)
            if _is_hidden(layer)
        ]
        for layer, activation in changed:
            layer.activation = self._recording(id(layer), activation)
        try:
            yield
        finally:
            for layer, activation in changed:
                layer.activation = activation

    def dormant(self) -> dict[str, tf.Tensor]:
        """Returns the share of dormant units, and the largest share in one layer.

        Returns:
          `dormant_units` and `dormant_layer`, scalars; nothing if no units were
          recorded in this graph.
        """
        here = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        shares, sizes = [], []
        for calls in self._sizes.values():
            known = [x for x in calls if _is_of(x, here)]
            if not known:
                continue
            size = tf.reduce_max(tf.stack(known), axis=0)
            is_dormant = size <= _DORMANT * tf.reduce_mean(size)
            shares.append(tf.reduce_mean(tf.cast(is_dormant, tf.float32)))
            sizes.append(size.shape[0])
        if not shares:
            return {}
        number = tf.add_n([s * n for s, n in zip(shares, sizes, strict=True)])
        return {
            "dormant_units": number / sum(sizes),
            "dormant_layer": tf.reduce_max(tf.stack(shares)),
        }

    def _recording(self, layer: int, activation: Any) -> Any:
        def record(inputs: Any) -> Any:
            output = activation(inputs)
            if output.shape.rank >= 2 and output.shape[-1] is not None:
                axes = list(range(output.shape.rank - 1))
                size = tf.reduce_mean(tf.abs(tf.cast(output, tf.float32)), axes)
                self._sizes.setdefault(layer, []).append(size)
            return output

        return record


def _is_of(tensor: tf.Tensor, graph: tf.Graph | None) -> bool:
    """Returns whether a tensor is of a graph; for None, whether it is of no graph."""
    is_symbolic = tf.is_symbolic_tensor(tensor)
    return is_symbolic and tensor.graph is graph if graph else not is_symbolic


def _is_hidden(layer: keras.layers.Layer) -> bool:
    activation = getattr(layer, "activation", None)
    name = getattr(activation, "__name__", "")
    is_cell = "recurrent" in name or hasattr(layer, "recurrent_activation")
    return callable(activation) and not is_cell and name not in ("linear", "softmax")


def of_experience(
    experience: Any, action_spec: types.NestedTensorSpec, reward_scale: Any
) -> dict[str, tf.Tensor]:
    """Returns scalars of a batch of frames.

    These are `observation_size`, the largest root mean square of an element of the
    float observations; `reward_size`, the root mean square of the rewards in the
    losses' units; and the numbers of `of_actions`.

    Args:
      experience: A `Trajectory` `[B, T, ...]`; nothing is returned for other
        experience.
      action_spec: The nest of bounded specs.
      reward_scale: The factor of the rewards in the losses.
    """
    if not isinstance(experience, trajectory.Trajectory):
        return {}
    numbers = {}
    floats = [x for x in tf.nest.flatten(experience.observation) if x.dtype.is_floating]
    if floats:
        numbers["observation_size"] = tf.reduce_max([_largest_size(x) for x in floats])
    rewards = [tf.cast(r, tf.float32) for r in tf.nest.flatten(experience.reward)]
    if len(rewards) == 1:
        scaled = tf.cast(reward_scale, tf.float32) * rewards[0]
        numbers["reward_size"] = tf.sqrt(tf.reduce_mean(tf.square(scaled)))
    counts = tf.cast(~experience.is_boundary(), tf.float32)
    return numbers | of_actions(experience.action, action_spec, counts)


def of_actions(
    actions: types.NestedTensor, action_spec: types.NestedTensorSpec, counts: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Returns how bounded float actions lie between their bounds; nothing for others.

    `actions_at_bound` is the largest share of one dimension's actions that lie at one
    of its bounds, and `actions_reach` the largest share of one dimension's range that
    its actions span.

    Args:
      actions: The nest of actions, `[B, ...]` or `[B, T, ...]`.
      action_spec: The nest of bounded specs.
      counts: 1 for each action that counts, and 0 for others, `[B]` or `[B, T]`.
    """
    bounded = [
        (action, spec)
        for action, spec in zip(
            tf.nest.flatten(actions), tf.nest.flatten(action_spec), strict=True
        )
        if spec.dtype.is_floating and hasattr(spec, "minimum")
    ]
    if not bounded:
        return {}
    return {
        "actions_at_bound": tf.reduce_max(
            [_share_at_bound(action, spec, counts) for action, spec in bounded]
        ),
        "actions_reach": tf.reduce_max(
            [_reach(action, spec, counts) for action, spec in bounded]
        ),
    }


def _largest_size(observation: tf.Tensor) -> tf.Tensor:
    squares = tf.square(tf.cast(observation, tf.float32))
    return tf.sqrt(tf.reduce_max(tf.reduce_mean(squares, axis=[0, 1])))


def _share_at_bound(action: tf.Tensor, spec: Any, counts: tf.Tensor) -> tf.Tensor:
    """Returns the largest share of a dimension's actions at one of its bounds."""
    low, high = (
        tf.broadcast_to(tf.cast(x, tf.float32), spec.shape)
        for x in (spec.minimum, spec.maximum)
    )
    near = _NEAR * (high - low)
    action = tf.cast(action, tf.float32)
    rank = action.shape.rank - counts.shape.rank
    weights = tf.reshape(counts, [*tf.unstack(tf.shape(counts)), *[1] * rank])
    number = tf.maximum(tf.reduce_sum(counts), 1.0)
    axes = list(range(counts.shape.rank))
    each = [
        tf.reduce_sum(weights * tf.cast(is_near, tf.float32), axes) / number
        for is_near in (action <= low + near, action >= high - near)
    ]
    return tf.reduce_max(tf.stack(each))


def _reach(action: tf.Tensor, spec: Any, counts: tf.Tensor) -> tf.Tensor:
    """Returns the largest share of a dimension's range that its actions span."""
    low, high = (tf.cast(x, tf.float32) for x in (spec.minimum, spec.maximum))
    action = tf.clip_by_value(tf.cast(action, tf.float32), low, high)
    rank = action.shape.rank - counts.shape.rank
    counted = tf.reshape(counts > 0, [*tf.unstack(tf.shape(counts)), *[1] * rank])
    axes = list(range(counts.shape.rank))
    greatest = tf.reduce_max(tf.where(counted, action, action.dtype.min), axes)
    least = tf.reduce_min(tf.where(counted, action, action.dtype.max), axes)
    return tf.reduce_max(tf.maximum(greatest - least, 0.0) / (high - low))
