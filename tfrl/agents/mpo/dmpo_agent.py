"""Distributional MPO: MPO whose critic predicts the distribution of the return.

With N actions a_i drawn from the target policy at s', and Z_target(s', a_i) the target
critic's distributions over fixed atoms, the critic minimises the cross entropy between
its distribution Z(s, a) and the projection onto the atoms of

    r + gamma * d * Z',    Z' the mixture (1/N) sum_i Z_target(s', a_i)

The policy's losses are MPO's, with the means of Z_target for values. MPO:
Abdolmaleki et al., "Relative entropy regularized policy iteration" (2018,
arXiv:1812.02256). The critic: Bellemare, Dabney and Munos, "A distributional
perspective on reinforcement learning" (2017, arXiv:1707.06887), with a continuous
policy as in Barth-Maron et al., "Distributed distributional deterministic policy
gradients" (2018, arXiv:1804.08617). Their combination is Acme's (Hoffman et al., "Acme:
a research framework for distributed reinforcement learning", 2020, arXiv:2006.00979).

The atoms of the critic's distributions span the discounted returns:

>>> import keras
>>> from tfrl import networks
>>> from tfrl.agents.mpo import DmpoAgent
>>> from tfrl.environments import native
>>> environment = native.load("Pendulum-v1", 1)
>>> agent = DmpoAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     policy_network=networks.Sequential(
...         [
...             networks.LayerNormMLP((64, 64), activate_final=True),
...             networks.MultivariateNormalDiagHead(1, use_tfd_independent=True),
...         ]
...     ),
...     critic_network=networks.Sequential(
...         [
...             networks.CriticMultiplexer(),
...             networks.LayerNormMLP((64, 64), activate_final=True),
...             networks.DiscreteValuedHead(vmin=-1000, vmax=0, num_atoms=51),
...         ]
...     ),
...     policy_optimizer=keras.optimizers.Adam(1e-4),
...     critic_optimizer=keras.optimizers.Adam(1e-4),
...     dual_optimizer=keras.optimizers.Adam(1e-2),
... )
>>> agent.policy.action(environment.reset()).action.shape
TensorShape([1, 1])
"""

from __future__ import annotations

from typing import Any, Unpack

import tensorflow as tf

from tfrl.agents import actor_critic, checks, updates
from tfrl.agents.mpo import mpo_agent
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class DmpoAgent(actor_critic.DistributionalCritics, mpo_agent.MpoAgent):
    """An MPO agent whose critic predicts the distribution of the return."""

    _algorithm = "DMPO"

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        policy_network: types.Network | types.Layer,
        critic_network: types.Network | types.Layer,
        policy_optimizer: types.Optimizer | None = None,
        critic_optimizer: types.Optimizer | None = None,
        dual_optimizer: types.Optimizer | None = None,
        **settings: Unpack[mpo_agent.MpoSettings],
    ) -> None:
        """Builds the target networks and the policies. The defaults are Acme's.

        Args:
          time_step_spec: See `MpoAgent`.
          action_spec: See `MpoAgent`.
          policy_network: See `MpoAgent`.
          critic_network: A `Network` (or Keras layer) that maps pairs of observations
            and actions to a `DiscreteValuedDistribution`, such as a `Sequential` of
            `CriticMultiplexer`, `LayerNormMLP` and `DiscreteValuedHead`. Its atoms
            should span all discounted returns.
          policy_optimizer: See `MpoAgent`.
          critic_optimizer: See `MpoAgent`.
          dual_optimizer: See `MpoAgent`.
          **settings: The optional arguments of `MpoAgent`.

        Raises:
          ValueError: The critic's output is not one value distribution, or an argument
            of `MpoAgent` is wrong or has no meaning here.
          TypeError: See `MpoAgent`.
          NotImplementedError: See `MpoAgent`.
        """
        checks.check_no_td_loss(
            settings.get("td_errors_loss_fn"), "DMPO", "the cross entropy"
        )
        super().__init__(
            time_step_spec,
            action_spec,
            policy_network,
            critic_network,
            policy_optimizer,
            critic_optimizer,
            dual_optimizer,
            **settings,
        )

    def _means(self, evaluation: mpo_agent.Evaluation) -> tf.Tensor:
        """Returns the means of `Z_target(s', a_i)`, `[N, B]`."""
        probs = evaluation.outputs.probs_parameter()
        # XLA adds up the last axis one number after the other, but not in a product.
        return self._by_action(tf.linalg.matvec(probs, evaluation.outputs.values))

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean cross entropy of `Z(s, a)`, and its details.

        The target is `r + gamma d Z'`, with the mixture `Z'` of `Z_target(s', a_i)`.
        """
        from tfrl.distributions import discrete_valued

        outputs = batch.details["evaluation"].outputs
        probs = self._by_action(outputs.probs_parameter())
        mixture = discrete_valued.DiscreteValuedDistribution(
            outputs.values, tf.math.log(tf.reduce_mean(probs, axis=0))
        )
        return self._regress_distributions(batch, mixture)
