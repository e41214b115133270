"""C51: DQN with a categorical distribution of the return.

The network predicts the probabilities p_i(s, a) of evenly spaced returns z_i, the
atoms, and the value of an action is their mean. The loss is the cross entropy

    -sum_i m_i log p_i(s, a)

where m is the distribution of r + gamma * d * z with the probabilities p(s', a*) of the
target network, projected onto the atoms. a* has the highest value of the target
network, or with `double_q` of the online network. Bellemare, Dabney and Munos, "A
distributional perspective on reinforcement learning" (2017, arXiv:1707.06887),
algorithm 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl import losses
from tfrl.agents import transitions as transitions_lib
from tfrl.agents.dqn import dqn_agent
from tfrl.agents.dqn import exploration as exploration_lib
from tfrl.networks import utils as network_utils
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import TensorNormalizer


class _Returns(NamedTuple):
    values: tf.Tensor
    logits: tf.Tensor


class CategoricalDqnAgent(dqn_agent.DqnAgent):
    """A DQN agent whose network predicts a distribution over fixed returns.

    `LossInfo.extra.td_loss` is the cross entropy. `td_error` is the KL divergence of
    the prediction from the target; prioritized replay takes it as the priority (Hessel
    et al., "Rainbow", 2018, arXiv:1710.02298).
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        categorical_q_network: types.Network,
        optimizer: types.Optimizer | None,
        observation_and_action_constraint_splitter: types.Splitter = None,
        min_q_value: float = -10.0,
        max_q_value: float = 10.0,
        epsilon_greedy: types.FloatOrSchedule | None = 0.1,
        n_step_update: int = 1,
        boltzmann_temperature: types.FloatOrSchedule | None = None,
        target_categorical_q_network: types.Network | None = None,
        target_update_tau: float = 1.0,
        target_update_period: int | None = 1,
        td_errors_loss_fn: types.LossFn | None = None,
        gamma: float = 1.0,
        reward_scale_factor: float = 1.0,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        *,
        double_q: bool = False,
        min_probability: float = 0.0,
        emit_log_probability: bool = False,
        training_data_spec: types.NestedTensorSpec | None = None,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
        exploration: exploration_lib.Exploration | None = None,
    ) -> None:
        """Builds the target network and the policies.

        `DqnAgent`, `TdOptions` and `AgentOptions` explain the arguments that are not
        listed here.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One scalar bounded integer spec with minimum 0.
          categorical_q_network: A network with the property `num_atoms` that maps
            observations to logits `[B, n, num_atoms]`, such as a `CategoricalQNetwork`.
          optimizer: See `DqnAgent`.
          observation_and_action_constraint_splitter: See `DqnAgent`.
          min_q_value: The lowest atom.
          max_q_value: The highest atom. The atoms should span all returns, which
            `reward_scale_factor` scales, because a target outside of them counts as the
            nearest atom.
          epsilon_greedy: See `DqnAgent`.
          boltzmann_temperature: See `DqnAgent`.
          target_categorical_q_network: The target network; a new copy if None.
          td_errors_loss_fn: Not used; it is accepted because TF-Agents' programs give
            it.
          double_q: Whether the online network chooses the next action.
          min_probability: The least probability of an atom in the loss, see
            `losses.clipped_cross_entropy`; 0 does not clip.
          emit_log_probability: See `DqnAgent`.
          training_data_spec: See `TFAgent`.
          exploration: See `DqnAgent`.

        Raises:
          TypeError: The network has no `num_atoms`.
          ValueError: The values of the atoms are not valid, the target network has
            another number of atoms, or an argument of `DqnAgent` is wrong.
        """
        del td_errors_loss_fn
        networks = (categorical_q_network, target_categorical_q_network)
        num_atoms = [_num_atoms(net) for net in networks if net is not None]
        if len(set(num_atoms)) > 1:
            raise ValueError(
                "categorical_q_network and target_categorical_q_network have "
                f"different numbers of atoms: expected the same num_atoms, got "
                f"{num_atoms[0]} and {num_atoms[1]}; give both the same."
            )
        number_checks.check_number(
            "max_q_value",
            max_q_value,
            min_q_value,
            excludes_low=True,
            remedy="give the least return as min_q_value and the greatest here",
        )
        number_checks.check_number(
            "min_probability",
            min_probability,
            0,
            0.5,
            excludes_high=True,
            remedy="give 0 to clip none, or 1e-5",
        )
        self._double_q = double_q
        self._min_probability = min_probability
        self._num_atoms = num_atoms[0]
        self._atoms = np.linspace(min_q_value, max_q_value, num_atoms[0], dtype="f4")
        super().__init__(
            time_step_spec,
            action_spec,
            categorical_q_network,
            optimizer,
            observation_and_action_constraint_splitter,
            epsilon_greedy,
            n_step_update,
            boltzmann_temperature,
            emit_log_probability,
            target_categorical_q_network,
            target_update_tau,
            target_update_period,
            None,
            gamma,
            reward_scale_factor,
            gradient_clipping,
            debug_summaries,
            summarize_grads_and_vars,
            train_step_counter,
            training_data_spec,
            name,
            seed=seed,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
            exploration=exploration,
        )

    def _check_network_output(self, net: Any, label: str) -> None:
        expected = (self._num_actions, self._num_atoms)
        network_utils.check_single_floating_network_output(
            net.create_variables(), expected, label=label
        )

    def _values_of(self, network_output: tf.Tensor) -> tf.Tensor:
        return tf.linalg.matvec(tf.nn.softmax(network_output), self._atoms)

    def _td_error(
        self, predictions: tf.Tensor, transitions: transitions_lib.Transitions
    ) -> tuple[tf.Tensor, tf.Tensor]:
        following = self._next_output(transitions)
        target = losses.categorical_target(
            transitions.reward,
            transitions.discount,
            _Returns(tf.constant(self._atoms), following),
        )
        if self._min_probability:
            loss = losses.clipped_cross_entropy(
                target, predictions, self._min_probability
            )
        else:
            loss = tf.nn.softmax_cross_entropy_with_logits(target, predictions)
        entropy = -tf.reduce_sum(tf.math.xlogy(target, target), axis=-1)
        return loss, tf.stop_gradient(loss) - entropy


def _num_atoms(net: Any) -> int:
    num_atoms = getattr(net, "num_atoms", None)
    if num_atoms is None:
        raise TypeError(
            f"categorical_q_network: expected a network with the property num_atoms, "
            f"got a {type(net).__name__} without; use a CategoricalQNetwork."
        )
    return int(num_atoms)


def project_distribution(
    supports: tf.Tensor,
    weights: tf.Tensor,
    target_support: tf.Tensor,
    validate_args: bool = False,
) -> tf.Tensor:
    """Projects distributions onto other atoms, as `losses.l2_project` does.

    Args:
      supports: The atoms, `[B, N]`.
      weights: Their probabilities, `[B, N]`.
      target_support: The new atoms, `[N]`, in rising order.
      validate_args: Whether the order of the new atoms is checked.

    Returns:
      The probabilities of the new atoms, `[B, N]`.

    Raises:
      ValueError: If the shapes do not fit.
      tf.errors.InvalidArgumentError: If `validate_args` is True and the new atoms are
        not in rising order.
    """
    supports, weights, target_support = map(
        tf.convert_to_tensor, (supports, weights, target_support)
    )
    shapes = supports.shape, weights.shape, target_support.shape
    if (
        target_support.shape.rank != 1
        or not supports.shape.is_compatible_with([None, *target_support.shape])
        or not supports.shape.is_compatible_with(weights.shape)
    ):
        raise ValueError(
            "supports, weights, target_support: got shapes "
            f"{', '.join(map(str, shapes))}, expected [B, N], [B, N] and [N]; give one "
            "probability for each atom, and as many new atoms, or call "
            "losses.l2_project for another number of them."
        )
    if validate_args:
        rises = tf.debugging.assert_greater(
            target_support[1:],
            target_support[:-1],
            "target_support: expected atoms that rise; sort them, without repetition.",
        )
        with tf.control_dependencies([] if rises is None else [rises]):
            target_support = tf.identity(target_support)
    return losses.l2_project(supports, weights, target_support)
