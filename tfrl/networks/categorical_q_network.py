"""CategoricalQNetwork: maps observations to distributions of the return.

Bellemare, Dabney and Munos, "A distributional perspective on reinforcement learning"
(2017, arXiv:1707.06887), section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import q_network, utils
from tfrl.specs import tensor_spec
from tfrl.typing import types
from tfrl.utils import number_checks


class CategoricalQNetwork(q_network.QNetwork):
    """Maps observations `[B, ...]` to logits `[B, num_actions, num_atoms]`.

    The softmax over the atoms of an action is the distribution of its return; the agent
    chooses the returns of the atoms.
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        action_spec: types.NestedTensorSpec,
        num_atoms: int = 51,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        conv_layer_params: Sequence[Any] | None = None,
        fc_layer_params: Sequence[int] | None = None,
        activation_fn: utils.Activation = keras.activations.relu,
        name: str | None = "CategoricalQNetwork",
        *,
        seed: int | None = None,
        dtype: Any = tf.float32,
        dueling_layer_params: Sequence[int] | None = None,
        noisy_stddev: float | None = None,
    ):
        """Creates the network; see `EncodingNetwork` for further arguments.

        Args:
          input_tensor_spec: The nest of observation specs.
          action_spec: The spec of one discrete action.
          num_atoms: The number of atoms of each distribution, at least 2.
          preprocessing_layers: As for `EncodingNetwork`.
          preprocessing_combiner: As for `EncodingNetwork`.
          conv_layer_params: As for `EncodingNetwork`.
          fc_layer_params: As for `EncodingNetwork`.
          activation_fn: As for `EncodingNetwork`.
          name: The network's name.
          seed: Seeds the initialisers; None follows `tf.random.set_seed`.
          dtype: As for `QNetwork`.
          dueling_layer_params: See `value_head.ValueHead`.
          noisy_stddev: See `value_head.ValueHead`.

        Raises:
          TypeError: If `action_spec` is not one bounded spec.
          ValueError: If `action_spec` is not discrete, or `num_atoms` is less than 2.
        """
        action_spec = tensor_spec.from_spec(action_spec)
        if not isinstance(action_spec, tensor_spec.BoundedTensorSpec):
            raise TypeError(
                f"action_spec: got {action_spec!r}, expected one bounded spec: "
                "action_spec must be a BoundedTensorSpec; give the actions bounds."
            )
        number_checks.check_integer(
            "num_atoms", num_atoms, 2, remedy="the paper takes 51"
        )
        super().__init__(
            input_tensor_spec,
            action_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            conv_layer_params=conv_layer_params,
            fc_layer_params=fc_layer_params,
            activation_fn=activation_fn,
            dtype=dtype,
            name=name,
            seed=seed,
            numbers_per_action=num_atoms,
            dueling_layer_params=dueling_layer_params,
            noisy_stddev=noisy_stddev,
        )
        self._num_atoms = num_atoms

    @property
    def num_atoms(self) -> int:
        """The number of atoms of each distribution."""
        return self._num_atoms
