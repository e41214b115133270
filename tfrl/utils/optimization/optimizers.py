"""Applies gradients with a Keras 3 or a TensorFlow 1 optimizer.

Agents hold an `OptimizerAdapter` and call `apply`. The adapter hides the kind of the
optimizer and makes checkpoints hold its slot variables.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.compilation import internals, replicas, variable_substitution
from tfrl.utils import keras_versions, number_checks
from tfrl.utils import variables as variables_lib

# Settings of Keras' optimizers that are wrong, or fail, in a replica.
_NOT_IN_REPLICAS = (
    "clipnorm",
    "clipvalue",
    "global_clipnorm",
    "gradient_accumulation_steps",
)
# Takes gradients, or None, for all variables, and returns them clipped.
Clip = Callable[[Sequence[Any]], list[Any]]


class OptimizerAdapter(tf.Module):
    """Applies gradients to a fixed list of variables.

    Keras 3 optimizers and `tf.compat.v1.train` optimizers are accepted. All slot
    variables are created here, before any trace, and are tracked for checkpoints.

    A plain `keras.optimizers.Adam` keeps its own slots and step counter but updates
    them with TensorFlow's fused kernel, which gives the same numbers in less time.
    A Keras optimizer already bound to other variables is cloned, since it can update
    only one list of variables.

    In the replicas of a `tf.distribute` strategy, `reduced` takes the means of the
    gradients and clips them, and `apply` applies them in every replica. Keras and
    TensorFlow 1 would clip before taking the means, and so take too large steps.
    """

    def __init__(
        self,
        optimizer: Any,
        trainable_variables: Iterable[Any],
        clip: Clip | None = None,
    ) -> None:
        """Creates the optimizer's variables.

        Args:
          optimizer: The optimizer; None for an agent that never trains, for example an
            agent that is restored only to act.
          trainable_variables: The variables that the optimizer updates.
          clip: A function that clips the gradients, such as `each_to_norm(10.0)`; None
            does not clip.

        Raises:
          TypeError: If `optimizer` is of another kind.
          ValueError: If there is no variable to train, the learning rate is negative or
            not finite, or the optimizer expects a scaled loss.
        """
        super().__init__(name="optimizer")
        self._clip = clip
        self._variables = list(trainable_variables)
        if not self._variables:
            raise ValueError(
                "trainable_variables: expected at least one variable to train, got "
                "none; give the agent a network with trainable layers."
            )
        if isinstance(optimizer, keras.optimizers.Optimizer):
            _check_no_loss_scale(optimizer)
            _check_learning_rate(optimizer)
            self.optimizer = _bind_keras_optimizer(optimizer, self._variables)
            self._apply = (
                self._apply_fused_adam
                if _is_plain_adam(self.optimizer, self._variables)
                else self._apply_keras
            )
        elif isinstance(optimizer, tf.compat.v1.train.Optimizer):
            self.optimizer = optimizer
            # Slots are made now, outside any trace. As a list those of Keras variables
            # are tracked; TensorFlow tracks those of a `tf.Variable` itself, and
            # refuses to save them twice.
            trained = variables_lib.as_tf_variables(self._variables)
            internals.create_v1_slots(optimizer, trained)
            self.slots = _v1_slots(
                optimizer,
                [v for v in self._variables if not isinstance(v, tf.Variable)],
            )
            self._apply = self._apply_v1
        elif optimizer is None:
            self.optimizer = None
            self._apply = _refuse
        else:
            keras_versions.check(optimizer, "optimizer")
            raise TypeError(
                "optimizer: expected a Keras 3 optimizer (keras.optimizers.Adam(1e-3)) "
                f"or a tf.compat.v1.train optimizer, got {type(optimizer).__name__}."
            )

    def variables(self) -> list[tf.Variable]:
        """Returns the optimizer's own variables: slots and counters."""
        if self.optimizer is None:
            return []
        if isinstance(self.optimizer, keras.optimizers.Optimizer):
            own = self.optimizer.variables
        else:
            own = _v1_variables(self.optimizer, self._variables)
        return variables_lib.as_tf_variables(own)

    def learning_rate(self) -> tf.Tensor | None:
        """Returns a Keras optimizer's current rate, float32 `[]`; None for others."""
        if not isinstance(self.optimizer, keras.optimizers.Optimizer):
            return None
        return tf.cast(self.optimizer.learning_rate, tf.float32)

    def reduced(
        self, loss: tf.Tensor, gradients: Sequence[Any]
    ) -> tuple[tf.Tensor, list[Any]]:
        """Returns the means over replicas of the loss and of the gradients, clipped.

        Args:
          loss: The loss of this replica's examples.
          gradients: The gradients of `loss`, or None.

        Raises:
          NotImplementedError: See `replicas.mean_over_replicas`.
          ValueError: See `check_replicas`.
        """
        if replicas.are_several():
            self.check_replicas(tf.distribute.get_strategy())
        loss, *means = replicas.mean_over_replicas([loss, *gradients])
        return loss, means if self._clip is None else self._clip(means)

    def check_replicas(self, strategy: tf.distribute.Strategy) -> None:
        """Checks that the replicas of a strategy can update the variables.

        Args:
          strategy: A strategy of several replicas.

        Raises:
          ValueError: A variable was not made in the strategy's scope, or the optimizer
            clips or accumulates gradients.
        """
        name = getattr(self.optimizer, "name", type(self.optimizer).__name__)
        for setting in _NOT_IN_REPLICAS:
            value = getattr(self.optimizer, setting, None)
            if value:
                raise ValueError(
                    f"optimizer {name!r}: got {setting}={value} with several replicas, "
                    "each of which would do so with its own part of the gradients, "
                    "expected None; give the agent gradient_clipping, or a larger "
                    "batch."
                )
        for variable in variables_lib.as_tf_variables(self._variables):
            replicas.check_scope(strategy, variable, "network")
        for variable in self.variables():
            replicas.check_scope(strategy, variable, f"optimizer {name!r}")

    def apply(self, gradients: Sequence[tf.Tensor | None]) -> None:
        """Applies one gradient to each variable; None leaves a variable unchanged.

        Args:
          gradients: The gradients, as `reduced` returned them.

        Raises:
          ValueError: If every gradient is None, or there is no optimizer.
        """
        pairs = [
            (gradient, variable)
            for gradient, variable in zip(gradients, self._variables, strict=True)
            if gradient is not None
        ]
        if not pairs:
            raise ValueError(
                "gradients: expected at least one that is not None for the variables "
                f"{[v.name for v in self._variables]}; the loss does not depend on "
                "them."
            )
        if replicas.are_several():
            # The optimizers add up the gradients of the replicas, which are equal now.
            number = tf.distribute.get_strategy().num_replicas_in_sync
            pairs = [(gradient / number, variable) for gradient, variable in pairs]
        self._apply(pairs)

    def _apply_keras(self, pairs: list[tuple[tf.Tensor, Any]]) -> None:
        self.optimizer.apply_gradients(pairs)

    def _apply_v1(self, pairs: list[tuple[tf.Tensor, Any]]) -> None:
        if variable_substitution.active():
            raise NotImplementedError(
                f"optimizer: got a tf.compat.v1 {type(self.optimizer).__name__} where "
                "many runs are trained at once, expected a Keras 3 optimizer, which "
                "can update stacked variables; use the one of the same name in "
                "keras.optimizers."
            )
        self.optimizer.apply_gradients(
            [(gradient, variables_lib.as_tf_variable(v)) for gradient, v in pairs]
        )

    @tf.autograph.experimental.do_not_convert
    def _apply_fused_adam(self, pairs: list[tuple[tf.Tensor, Any]]) -> None:
        """Applies Adam (Kingma and Ba, 2015, algorithm 1) by the fused kernel."""
        if tf.distribute.in_cross_replica_context() or tf.distribute.has_strategy():
            self._apply_keras(pairs)
            return
        adam = self.optimizer
        step = tf.cast(adam.iterations.value + 1, tf.float32)
        learning_rate = tf.cast(adam.learning_rate, tf.float32)
        if variable_substitution.active():
            self._apply_adam_in_tensors(pairs, step, learning_rate)
            return
        beta1_power = tf.pow(adam.beta_1, step)
        beta2_power = tf.pow(adam.beta_2, step)
        for gradient, variable in pairs:
            m, v = internals.adam_slots(adam, variable)
            tf.raw_ops.ResourceApplyAdam(
                var=variables_lib.as_tf_variable(variable).handle,
                m=m.handle,
                v=v.handle,
                beta1_power=beta1_power,
                beta2_power=beta2_power,
                lr=learning_rate,
                beta1=adam.beta_1,
                beta2=adam.beta_2,
                epsilon=adam.epsilon,
                grad=tf.convert_to_tensor(gradient),
            )
        adam.iterations.value.assign_add(1)

    def _apply_adam_in_tensors(
        self,
        pairs: list[tuple[tf.Tensor, Any]],
        step: tf.Tensor,
        learning_rate: tf.Tensor,
    ) -> None:
        """Computes the update of the fused kernel, for variables that are tensors."""
        adam = self.optimizer
        correction = tf.sqrt(1.0 - tf.pow(adam.beta_2, step)) / (
            1.0 - tf.pow(adam.beta_1, step)
        )
        rate = learning_rate * correction
        for gradient, variable in pairs:
            m, v = internals.adam_slots(adam, variable)
            gradient = tf.convert_to_tensor(gradient)
            mean = m.assign_add((gradient - m) * (1.0 - adam.beta_1))
            square = v.assign_add((tf.square(gradient) - v) * (1.0 - adam.beta_2))
            variables_lib.as_tf_variable(variable).assign_sub(
                mean * rate / (tf.sqrt(square) + adam.epsilon)
            )
        adam.iterations.value.assign_add(1)


def _refuse(pairs: list[tuple[tf.Tensor, Any]]) -> None:
    raise ValueError(
        f"optimizer: got None, expected one to update {len(pairs)} variables with; "
        "give the agent an optimizer, keras.optimizers.Adam(1e-3) say, to train it."
    )


def half_squared_norm(gradients: Sequence[Any]) -> tf.Tensor:
    """Returns half the sum of the squares of all gradients, a scalar.

    It is finite if and only if all gradients are finite, and small enough that the sum
    of their squares, which optimizers such as Adam use, does not overflow.

    Args:
      gradients: Tensors or `tf.IndexedSlices`; None counts as zero.
    """
    values = [
        gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        for gradient in gradients
        if gradient is not None
    ]
    # The square of a float16 overflows at 256.
    wide = [tf.cast(v, tf.float32) if v.dtype.size < 4 else v for v in values]
    halves = [tf.nn.l2_loss(v) for v in wide]
    if len({half.dtype for half in halves}) > 1:
        halves = [tf.cast(half, tf.float64) for half in halves]
    return tf.add_n(halves) if halves else tf.constant(0.0)


def clip_gradient_norms(
    gradients: Sequence[tf.Tensor | None], max_norm: float | None
) -> list[tf.Tensor | None]:
    """Clips each gradient to norm `max_norm`, if not None; keeps gradients of None."""
    if max_norm is None:
        return list(gradients)
    return [g if g is None else tf.clip_by_norm(g, max_norm) for g in gradients]


def each_to_norm(max_norm: float | None) -> Clip | None:
    """Returns a function that clips each gradient to `max_norm`; None for None."""
    if max_norm is None:
        return None
    return functools.partial(clip_gradient_norms, max_norm=max_norm)


def all_to_norm(max_norm: float | None) -> Clip | None:
    """Returns a function that clips the norm of all gradients together; None for None.

    Gradients that are not finite become NaN.
    """
    if max_norm is None:
        return None
    return lambda gradients: tf.clip_by_global_norm(gradients, max_norm)[0]


def to_share_of_weights(variables: Sequence[Any], share: float | None) -> Clip | None:
    """Returns a function that clips each gradient by its weights; None for None.

    A gradient's norm is at most `share` times the norm of its variable, or times 0.001
    if that is larger. Brock et al., "High-performance large-scale image recognition
    without normalization" (2021, arXiv:2102.06171), section 4.1, with the norm of the
    whole variable instead of its rows.

    Args:
      variables: The variables, in the order of the gradients.
      share: The largest relative norm.
    """
    if share is None:
        return None

    def clip(gradients: Sequence[Any]) -> list[Any]:
        return [
            gradient
            if gradient is None
            else tf.clip_by_norm(
                gradient,
                share * tf.maximum(tf.norm(tf.convert_to_tensor(variable)), 1e-3),
            )
            for gradient, variable in zip(gradients, variables, strict=True)
        ]

    return clip


def _check_no_loss_scale(optimizer: keras.optimizers.Optimizer) -> None:
    """Raises a ValueError if the optimizer divides gradients by the loss's scale."""
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        raise ValueError(
            "optimizer: got a LossScaleOptimizer, which divides gradients by the scale "
            "of a loss that no agent scales, expected its inner optimizer; mixed "
            "precision in mixed_bfloat16 needs no scaling."
        )
    if optimizer.loss_scale_factor:
        raise ValueError(
            f"optimizer {optimizer.name!r}: got loss_scale_factor="
            f"{optimizer.loss_scale_factor}, by which it divides gradients of a loss "
            "that no agent scales, expected None; leave it out, since mixed precision "
            "in mixed_bfloat16 needs no scaling."
        )


def _check_learning_rate(optimizer: keras.optimizers.Optimizer) -> None:
    rate = internals.learning_rate(optimizer)
    if isinstance(rate, keras.Variable):
        with tf.init_scope():
            rate = float(tf.convert_to_tensor(rate.value))
    number_checks.check_number(
        "learning_rate",
        rate,
        0.0,
        remedy="give the optimizer a small positive number, such as 1e-3",
    )


def _bind_keras_optimizer(
    optimizer: keras.optimizers.Optimizer, variables: list[Any]
) -> keras.optimizers.Optimizer:
    if optimizer.built:
        if internals.updates_exactly(optimizer, variables):
            return optimizer
        optimizer = type(optimizer).from_config(optimizer.get_config())
    optimizer.build(variables)
    return optimizer


def _v1_variables(
    optimizer: tf.compat.v1.train.Optimizer, trained: Sequence[Any]
) -> list[tf.Variable]:
    """Returns all variables of `optimizer`, in an order that does not change.

    The optimizer's own list is sorted by name, and the names depend on how many layers
    a program has made before.
    """
    slots = _v1_slots(optimizer, trained)
    known = {id(slot) for slot in slots}
    return [*slots, *(v for v in optimizer.variables() if id(v) not in known)]


def _v1_slots(
    optimizer: tf.compat.v1.train.Optimizer, trained: Sequence[Any]
) -> list[tf.Variable]:
    """Returns the slots of variables, in the order on which checkpoints rely."""
    trained = variables_lib.as_tf_variables(trained)
    return [
        optimizer.get_slot(variable, name)
        for name in optimizer.get_slot_names()
        for variable in trained
    ]


def _is_plain_adam(
    optimizer: keras.optimizers.Optimizer, variables: Sequence[Any]
) -> bool:
    """Returns whether the fused kernel computes exactly this optimizer's update."""
    if type(optimizer) is not keras.optimizers.Adam or not internals.has_adam_slots():
        return False
    extras = (
        "amsgrad",
        "clipnorm",
        "clipvalue",
        "global_clipnorm",
        "weight_decay",
        "use_ema",
        "gradient_accumulation_steps",
    )
    return not any(getattr(optimizer, extra, None) for extra in extras) and all(
        tf.as_dtype(v.dtype) == tf.float32 and getattr(v, "constraint", None) is None
        for v in variables
    )
