"""The parts of an update: losses with their optimizers, and updates of targets.

An agent lists its parts, one for each optimizer; `TFAgent._train` takes them one after
the other, and then moves the target networks. A part uses the weights as the parts
before it have changed them, and gets the details of these parts' losses.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks
from tfrl.compilation import replicas, variable_substitution
from tfrl.typing import types
from tfrl.utils import common, mixins, variables
from tfrl.utils.optimization import optimizers


class Batch(NamedTuple):
    """The input of the loss of a part.

    Attributes:
      data: The experience as the agent's `_prepare` returned it, such as `Transitions`.
      weights: The weight of each example in the losses; see `TFAgent.train`.
      training: Whether networks are applied as in training.
      seed: The seed of the part's random numbers, int64 `[2]`; None for an agent whose
        losses draw none.
      details: The details, by name, that the losses of the earlier parts returned.
    """

    data: Any
    weights: tf.Tensor | None
    training: bool
    seed: tf.Tensor | None = None
    details: Mapping[str, Any] = {}


# Returns a scalar loss, and details by name.
PartLoss = Callable[[Batch], tuple[tf.Tensor, dict[str, Any]]]


class Part(tf.Module, mixins.Untracked):
    """A loss with the networks that it trains, their optimizer and their schedule.

    Attributes:
      label: The part's name.
      loss: The loss before its weight. A subclass of an agent may replace it.
      weight: The factor of the loss. A subclass of an agent may replace it, too.
      optimizer: The optimizer.
      period: The number of train steps between updates; None updates in every train
        step.
      after: A function to call after each update, or None.
      counts: Whether the agent's loss includes the loss of this part.
      trained: The networks, or modules, whose trainable variables are updated.
    """

    def __init__(
        self,
        label: str,
        loss: PartLoss,
        trained: Sequence[tf.Module],
        optimizer: types.Optimizer | None,
        *,
        clip: optimizers.Clip | None = None,
        weight: float = 1.0,
        period: int | None = None,
        after: Callable[[], object] | None = None,
        counts: bool = True,
        called: Sequence[tf.Module] = (),
    ) -> None:
        """Makes the optimizer's variables.

        Args:
          label: The part's name, such as "actor", which gives the names "actor_loss"
            and "actor_learning_rate" in logs and loss infos.
          loss: A function of a `Batch` that returns a scalar loss, and details by name.
          trained: The networks, or modules, whose trainable variables are updated.
          optimizer: The optimizer; None for an agent that never trains.
          clip: See `OptimizerAdapter`.
          weight: The factor of the loss.
          period: The number of train steps between updates; the first is in the first
            train step. The part then keeps the loss of its last update for the steps
            between, and has no details. None updates it in each train step.
          after: A function to call after each update, such as a projection.
          counts: Whether the agent's loss includes the loss of this part.
          called: Further networks that the loss calls, which may change their random
            states.
        """
        super().__init__(name=label)
        self.label = label
        self.loss = loss
        self.counts = counts
        self.trained = list(trained)
        self.optimizer = optimizers.OptimizerAdapter(
            optimizer, self.trained_variables(), clip
        )
        self.weight = weight
        self.period = period
        self.after = after
        # Checkpoints find them elsewhere.
        self._set_untracked("_called", tuple(called))
        self._last_loss = (
            None
            if period is None
            else tf.Variable(0.0, trainable=False, name=f"{label}_loss")
        )

    def compute(self, batch: Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns what `loss` does; raises a TypeError if a subclass's is no pair."""
        name = getattr(self.loss, "__qualname__", f"the loss of the {self.label}")
        return checks.pair(
            name, self.loss(batch), "a scalar loss and a dict of details"
        )

    def trained_variables(self) -> list[types.Variable]:
        """Returns the variables that the part updates."""
        return variables.trainable_variables(self.trained)

    def untrained_variables(self) -> list[types.Variable]:
        """Returns the networks' other variables, such as statistics of layers."""
        return [v for m in self.trained for v in m.non_trainable_variables]

    def held(self) -> list[types.Variable]:
        """Returns the networks' variables, and all others that an update changes."""
        return [
            *(v for module in self.trained for v in module.variables),
            *self.optimizer.variables(),
            *([] if self._last_loss is None else [self._last_loss]),
        ]

    def gradient_norm(self, batch: Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the norm of all gradients before clipping, and the loss's details."""
        with tf.GradientTape() as tape:
            loss, details = self.compute(batch)
        gradients = tape.gradient(loss, self.trained_variables())
        return tf.cast(tf.linalg.global_norm(gradients), tf.float32), details

    def at_its_time(
        self, step: Callable[[], tuple[tf.Tensor, Any]], train_step: tf.Variable
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        """Takes a gradient step in every `period`-th train step.

        Args:
          step: Takes the step, and returns the loss before the step, and details.
          train_step: The number of train steps before this one.

        Returns:
          The loss before the last step that was taken, and no details.
        """
        kept, period = self._last_loss, self.period
        assert kept is not None
        assert period is not None

        def step_and_keep() -> None:
            kept.assign(step()[0])

        is_due = train_step % period == 0
        if period == 1:
            step_and_keep()
        elif replicas.are_several():
            # In a branch, replicas cannot wait for each other.
            self._undo_unless(is_due, step_and_keep)
        else:
            variable_substitution.cond(is_due, step_and_keep)
        return kept.read_value(), {}

    def _undo_unless(self, is_due: tf.Tensor, step: Callable[[], None]) -> None:
        """Takes a step, and undoes it unless it is due."""
        states = [v for module in self._called for v in module.non_trainable_variables]
        held = variables.as_tf_variables([*self.held(), *states])
        before = [tf.identity(variable) for variable in held]
        with tf.control_dependencies(before):
            step()
        for variable, value in zip(held, before, strict=True):
            variable.assign(tf.where(is_due, variable, value))


class Temperature(tf.Module):
    """A positive factor that is adapted until a quantity reaches a target.

    The factor rises while the quantity is below the target, and falls while the
    quantity is above it. The variable holds the factor's logarithm.

    Attributes:
      log: The variable of the logarithm.
      target: The number that the quantity should reach.
    """

    def __init__(
        self,
        initial_log: float,
        target: float = 0.0,
        *,
        use_log: bool = True,
        bounds: tuple[float, float] | None = None,
        name: str = "log_alpha",
    ) -> None:
        """Makes the variable.

        Args:
          initial_log: The initial logarithm.
          target: The number that the quantity should reach.
          use_log: See `losses.temperature_loss`.
          bounds: The least and the greatest logarithm; None for no bounds.
          name: The name of the variable.
        """
        super().__init__()
        self.log = tf.Variable(initial_log, dtype=tf.float32, name=name)
        self.target = target
        self._use_log = use_log
        self._bounds = bounds

    def value(self) -> tf.Tensor:
        """Returns the factor, a scalar."""
        return tf.exp(tf.convert_to_tensor(self.log))

    def loss(self, quantity: types.Tensor) -> tf.Tensor:
        """Returns the factor's loss, of the shape of `quantity`."""
        return losses.temperature_loss(
            tf.convert_to_tensor(self.log), quantity, self.target, self._use_log
        )

    def project(self) -> None:
        """Moves the logarithm into its bounds."""
        if self._bounds is not None:
            self.log.assign(tf.clip_by_value(self.log, *self._bounds))


def total_loss(
    parts: Sequence[Part], part_losses: Mapping[str, tf.Tensor], order: Sequence[str]
) -> tf.Tensor:
    """Returns the sum of the losses that count.

    Args:
      parts: The parts.
      part_losses: The loss of each part, by its label.
      order: Names `<label>_loss`, in the order in which the losses are added up, since
        sums of floats depend on it. Other names are ignored.
    """
    by_name = {f"{p.label}_loss": part_losses[p.label] for p in parts if p.counts}
    return functools.reduce(tf.add, [by_name[n] for n in order if n in by_name])


def make_updater(
    pairs: Sequence[tuple[types.Network, types.Network]],
    tau: types.Float,
    period: types.Int | None,
) -> common.Periodically:
    """Returns a callable that updates target networks at every `period`-th call.

    The statistics of layers, which are not trained, are copied.

    Args:
      pairs: Networks and their target networks.
      tau: The step towards the network's weights, in [0, 1]; 1 copies them.
      period: The number of calls between updates; None means never.
    """

    def update() -> None:
        for network, target in pairs:
            common.soft_variables_update(
                network.variables, target.variables, tau=tau, tau_non_trainable=1.0
            )

    return common.Periodically(update, period, "update_target")


def copy_weights(pairs: Sequence[tuple[types.Network, types.Network]]) -> None:
    """Copies the weights of networks into their target networks."""
    for network, target in pairs:
        common.soft_variables_update(network.variables, target.variables, tau=1.0)
