"""Learns several objectives, and chooses by a scalarization of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.agents import checks
from tfrl.bandits.agents import bandit_agent
from tfrl.bandits.multi_objective import multi_objective_scalarizer
from tfrl.bandits.policies import greedy_multi_objective_neural_policy, loss_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils.optimization import optimizers


class GreedyMultiObjectiveNeuralAgent(bandit_agent.BanditAgent):
    """Trains a network for each objective by regression; rewards are `[M]`.

    The loss is the sum of the objectives' losses, each as in
    `GreedyRewardPredictionAgent`.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        scalarizer: multi_objective_scalarizer.Scalarizer,
        objective_network_and_loss_fn_sequence: Sequence[tuple[Any, types.LossFn]],
        optimizer: types.Optimizer | None,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        accepts_per_arm_features: bool = False,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        enable_summaries: bool = True,
        emit_policy_info: Sequence[str] = (),
        train_step_counter: tf.Variable | None = None,
        laplacian_matrix: types.TensorLike | None = None,
        laplacian_smoothing_weights: Sequence[float] | None = None,
        name: str | None = None,
        *,
        emit_log_probability: bool = False,
    ) -> None:
        """Makes the policy; see `GreedyRewardPredictionAgent` for other arguments.

        Args:
          scalarizer: Makes one reward of the objectives.
          objective_network_and_loss_fn_sequence: A pair for each objective: its
            network, and its loss of rewards and predictions for each element.
          laplacian_matrix: The Laplacian matrix of a graph of the arms, or None.
          laplacian_smoothing_weights: The weight of the smoothing of each objective.

        Raises:
          ValueError: There are fewer than two objectives, or their number differs from
            that of the weights.
        """
        checks.check_gradient_clipping(gradient_clipping)
        pairs = objective_network_and_loss_fn_sequence
        policy = greedy_multi_objective_neural_policy.GreedyMultiObjectiveNeuralPolicy(
            time_step_spec,
            action_spec,
            scalarizer,
            [pair[0] for pair in pairs],
            observation_and_action_constraint_splitter,
            accepts_per_arm_features,
            emit_policy_info,
            emit_log_probability=emit_log_probability,
        )
        number = len(laplacian_smoothing_weights or ())
        if laplacian_matrix is not None and number != len(pairs):
            raise ValueError(
                f"laplacian_smoothing_weights: got {laplacian_smoothing_weights} with "
                f"a laplacian_matrix, expected {len(pairs)} numbers, one for each "
                "objective; give as many."
            )
        super().__init__(
            policy,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            enable_summaries=enable_summaries,
            train_step_counter=train_step_counter,
            name=name,
        )
        self._networks = policy.objective_networks
        self._error_loss_fns = [loss_utils.element_wise(pair[1]) for pair in pairs]
        self._laplacian = laplacian_matrix
        self._smoothings = laplacian_smoothing_weights or [0.0] * len(pairs)
        self._set_only_part(
            self._networks, optimizer, optimizers.each_to_norm(gradient_clipping)
        )

    def _loss_of(self, rows: bandit_agent.Rows, training: bool) -> tf.Tensor:
        rewards = tf.cast(rows.reward, tf.float32)
        if rewards.shape[1:] != [len(self._networks)]:
            raise ValueError(
                f"reward: got shape {rewards.shape}, expected [n, "
                f"{len(self._networks)}], a reward for each network; give as many "
                "networks as objectives."
            )
        errors = [
            loss_utils.row_errors(
                network(rows.observation, training=training)[0],
                rewards[:, i],
                rows.action,
                error_loss_fn,
                self._laplacian,
                smoothing,
            )
            for i, (network, error_loss_fn, smoothing) in enumerate(
                zip(self._networks, self._error_loss_fns, self._smoothings, strict=True)
            )
        ]
        return bandit_agent.mean_over_rows(tf.add_n(errors), rows)
