"""Acme's networks for Atari, for DQN, R2D2 and IMPALA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.acme.tf.networks import duelling, embedding, vision
from tfrl.acme.tf.networks.vision import AtariTorso as AtariTorso
from tfrl.networks import network, sequential
from tfrl.networks.heads import value_head


class _AtariNetwork(network.Network):
    """Base class of networks that are a stack of layers."""

    def __init__(
        self,
        layers: Sequence[Any],
        input_tensor_spec: Any,
        name: str | None,
        seed: int | None,
    ):
        stack = sequential.Sequential(layers, seed=seed)
        super().__init__(input_tensor_spec, stack.state_spec, name)
        self._stack = stack

    def call(
        self,
        inputs: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[Any, Any]:
        """Returns the output of the last layer, and the new state."""
        result: tuple[Any, Any] = self._stack(
            inputs, step_type=step_type, network_state=network_state, training=training
        )
        return result


class DQNAtariNetwork(_AtariNetwork):
    """`AtariTorso` and a `DuellingMLP` of 512 units, as in Ape-X DQN.

    See Horgan et al., "Distributed prioritized experience replay", 2018.
    """

    def __init__(
        self,
        num_actions: int,
        input_tensor_spec: Any = None,
        name: str | None = "DQNAtariNetwork",
        *,
        seed: int | None = None,
    ):
        """Creates the network.

        Args:
          num_actions: The number of actions.
          input_tensor_spec: The spec of the images; see `Network`.
          name: The network's name.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.
        """
        layers = [vision.AtariTorso(), duelling.DuellingMLP(num_actions, [512])]
        super().__init__(layers, input_tensor_spec, name, seed)


class R2D2AtariNetwork(_AtariNetwork):
    """A recurrent Q-network: `OAREmbedding`, an LSTM of 512 units, `DuellingMLP`.

    See Kapturowski et al., "Recurrent experience replay in distributed reinforcement
    learning", 2019. The observation is a nest with the fields of `OAREmbedding`.
    """

    def __init__(
        self,
        num_actions: int,
        core: Any = None,
        input_tensor_spec: Any = None,
        name: str | None = "R2D2AtariNetwork",
        *,
        seed: int | None = None,
    ):
        """Creates the network.

        Args:
          num_actions: The number of actions.
          core: A recurrent Keras cell or layer, or recurrent Network; by default an
            `LSTMCell` of 512 units.
          input_tensor_spec: The nest of specs of the observations; see `Network`.
          name: The network's name.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.
        """
        layers = [
            embedding.OAREmbedding(vision.AtariTorso(), num_actions),
            keras.layers.LSTMCell(512) if core is None else core,
            duelling.DuellingMLP(num_actions, [512]),
        ]
        super().__init__(layers, input_tensor_spec, name, seed)
        self._set_untracked("_core", core)

    def _layer_arguments(self) -> dict[str, Any]:
        return {} if self._core is None else {"core": self._core}


class IMPALAAtariNetwork(_AtariNetwork):
    """A recurrent actor-critic: `OAREmbedding` of `AtariTorso`, an LSTM, two heads.

    See Espeholt et al., "IMPALA: scalable distributed deep-RL with importance weighted
    actor-learner architectures", 2018. The output is `(logits, value)`; the observation
    is a nest with the fields of `OAREmbedding`.
    """

    _torso: Callable[[], keras.layers.Layer] = vision.AtariTorso

    def __init__(
        self,
        num_actions: int,
        input_tensor_spec: Any = None,
        name: str | None = None,
        *,
        seed: int | None = None,
    ):
        """Creates the network.

        Args:
          num_actions: The number of actions.
          input_tensor_spec: The nest of specs of the observations; see `Network`.
          name: The network's name; None takes the class's name.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.
        """
        layers = [
            embedding.OAREmbedding(type(self)._torso(), num_actions),
            keras.layers.LSTMCell(256),
            keras.layers.Dense(256),
            tf.nn.relu,
            value_head.PolicyValueHead(num_actions),
        ]
        super().__init__(layers, input_tensor_spec, name or type(self).__name__, seed)


class DeepIMPALAAtariNetwork(IMPALAAtariNetwork):
    """`IMPALAAtariNetwork` with a `ResNetTorso` instead of `AtariTorso`."""

    _torso = vision.ResNetTorso
