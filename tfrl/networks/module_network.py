"""ModuleNetwork: a Sonnet module, or another `tf.Module` that can be called."""

from __future__ import annotations

import copy
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import layer_utils, network, utils
from tfrl.networks.construction import recurrence
from tfrl.utils import keras_versions


def is_module(value: Any) -> bool:
    """Whether a value is a module that a `ModuleNetwork` takes."""
    is_layer = isinstance(value, keras.layers.Layer)
    return isinstance(value, tf.Module) and callable(value) and not is_layer


def as_layer(module: Any) -> Any:
    """Returns a layer for a Keras layer, a Sonnet module or a function.

    A Keras layer or None is returned unchanged, a module in a `ModuleNetwork`, and a
    function in a Keras `Lambda`.

    Raises:
      TypeError: If `module` is a layer of Keras 2.
    """
    keras_versions.check(module, "layer")  # Layers of Keras 2 are modules, too.
    if module is None or isinstance(module, keras.layers.Layer):
        return module
    if is_module(module):
        return ModuleNetwork(module)
    return keras.layers.Lambda(module)


class ModuleNetwork(network.Network):
    """Applies a module of Sonnet, and has its variables.

    The module takes a nest of tensors `[B, ...]`, or several of them: a plain tuple,
    such as the pair of an observation and an action, is passed as several arguments.
    The outer dimensions of `[B, T, ...]` are folded into one.

    A core has `initial_state(batch_size)`, takes inputs and a state, and returns
    outputs and the next state. It is applied to each step of `[B, T, ...]`, and its
    state is the initial one before the steps whose `step_type` is FIRST.

    Keras layers in the module count, and after `create_variables` the module itself
    finds their variables, too; see `layer_utils.adopt_layers`.
    """

    def __init__(self, module: Any, input_spec: Any = None, name: str | None = None):
        """Takes the module, which is not copied, so that weights can be shared.

        Args:
          module: The module. Copies of the network begin with other weights, but with
            the same if the module has variables already.
          input_spec: The nest of specs of the inputs; None if not known.
          name: The network's name.
        """
        state = module.initial_state(1) if hasattr(module, "initial_state") else ()
        super().__init__(
            input_spec,
            tf.nest.map_structure(
                lambda leaf: tf.TensorSpec(leaf.shape[1:], leaf.dtype), state
            ),
            name,
        )
        self.module = module
        self.layers_in_module = layer_utils.layers_in_module(module)
        is_new = not layer_utils.tf_variables(self)
        self._set_untracked("_copied", copy.deepcopy(module) if is_new else module)

    def copy(self, **kwargs: Any) -> Any:
        """Makes a network of a copy of the module; see `Network.copy`."""
        return super().copy(**{"module": copy.deepcopy(self._copied), **kwargs})

    def create_variables(self, input_tensor_spec: Any = None, **kwargs: Any) -> Any:
        """Makes the variables, which the module finds then; see `Network`."""
        specs = super().create_variables(input_tensor_spec, **kwargs)
        layer_utils.adopt_layers(self.module)
        return specs

    def call(
        self, inputs: Any, step_type: Any = None, network_state: Any = ()
    ) -> tuple[Any, Any]:
        """Returns the output of the module and the next state, `()` without a state.

        Args:
          inputs: The nest of inputs, or a plain tuple of several.
          step_type: As for a `Network`.
          network_state: As for a `Network`.

        Raises:
          ValueError: The module is a core, and the number T of steps is not known.
          TypeError: The module returns distributions for sequences.
        """
        rank = self._outer_rank(inputs, step_type)
        if hasattr(self.module, "initial_state"):
            unroll = self._unrolled if rank == 2 else self._step
            resets = recurrence.reset_mask(step_type)
            return unroll(inputs, resets, network_state or self._zeros(inputs))
        if rank == 1:
            return self._applied(inputs), ()
        squash = utils.BatchSquash(rank)
        outputs = self._applied(tf.nest.map_structure(squash.flatten, inputs))
        if any(map(utils.is_distribution, tf.nest.flatten(outputs))):
            raise TypeError(
                f"{self.name}: got sequences, and a module whose output is a "
                "distribution, expected tensors; put the last layer beside the module: "
                "networks.Sequential([module, head])."
            )
        return tf.nest.map_structure(squash.unflatten, outputs), ()

    def _outer_rank(self, inputs: Any, step_type: Any) -> int:
        if self.input_tensor_spec is not None:
            return utils.outer_rank(inputs, self.input_tensor_spec)
        return step_type.shape.rank if tf.is_tensor(step_type) else 1

    def _applied(self, inputs: Any, *state: Any) -> Any:
        parts = inputs if type(inputs) is tuple else (inputs,)
        return self.module(*parts, *state)

    def _zeros(self, inputs: Any) -> Any:
        return self.module.initial_state(tf.shape(tf.nest.flatten(inputs)[0])[0])

    def _unrolled(self, inputs: Any, resets: Any, state: Any) -> tuple[Any, Any]:
        num_steps = tf.nest.flatten(inputs)[0].shape[1]
        if num_steps is None:
            raise ValueError(
                f"{self.name}: got sequences of an unknown length, expected a known "
                "one, since Sonnet's cores are unrolled step by step; give the dataset "
                "num_steps, or take a Keras cell, such as keras.layers.LSTMCell."
            )
        outputs = []
        for t in range(num_steps):
            now = tf.nest.map_structure(lambda x, t=t: x[:, t], inputs)
            output, state = self._step(
                now, None if resets is None else resets[:, t], state
            )
            outputs.append(output)
        return tf.nest.map_structure(lambda *xs: tf.stack(xs, axis=1), *outputs), state

    def _step(self, inputs: Any, reset: Any, state: Any) -> tuple[Any, Any]:
        if reset is not None:

            def begun(zero: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
                mask = tf.reshape(reset, [-1, *[1] * (old.shape.rank - 1)])
                return tf.where(mask, zero, old)

            state = tf.nest.map_structure(begun, self._zeros(inputs), state)
        output, state = self._applied(inputs, state)
        return output, state
