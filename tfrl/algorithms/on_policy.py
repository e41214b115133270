"""Algorithms that learn from rollouts: their settings, networks and loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tfrl import agents, train
from tfrl.algorithms import mixins, parts, spaces
from tfrl.algorithms.settings import (
    FROM_0,
    SIZE,
    SIZE_OR_0,
    field,
    live,
    remedy_for,
    uniform,
)


class Rollouts(mixins.Steps):
    """An iteration collects a rollout, in the same number of frames anywhere."""

    num_envs: int = 8

    @classmethod
    def fitted(cls, values: Mapping[str, Any], num_envs: int) -> dict[str, Any]:
        """Returns changes that keep the number of frames in a rollout."""
        frames = values["collect_steps_per_iteration"] * values["num_envs"]
        steps = max(frames // num_envs, 1)
        return {"num_envs": num_envs, "collect_steps_per_iteration": steps}


class Learner(
    mixins.GradientNorm,
    mixins.FinalRate,
    mixins.OneRate,
    mixins.Discount,
    mixins.Layers,
    mixins.Networks,
    mixins.Normalized,
):
    """What learns from rollouts, in one process or with actors."""

    max_gradient_norm: float = 0.5

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "gradient_clipping": self.max_gradient_norm or None,
        }


class OnPolicy(Learner, Rollouts):
    """An algorithm that learns from rollouts, in epochs."""

    collect_steps_per_iteration: int = 128
    num_epochs: int = field(
        "Epochs of training on each rollout.", SIZE, search=(1, 5, 10, 20), default=1
    )
    minibatch_size: int = field(
        "Frames in each update; 0 uses the whole rollout.", SIZE_OR_0, default=0
    )
    max_gradient_norm: float = field(
        "Largest norm of all gradients together; 0: unlimited.",
        FROM_0,
        default=0.5,
        search=uniform(0.3, 2.0),
    )

    @classmethod
    def fitted(cls, values: Mapping[str, Any], num_envs: int) -> dict[str, Any]:
        """Returns changes that also keep the number of minibatches, in whole frames."""
        changes = super().fitted(values, num_envs)
        size = values["minibatch_size"]
        frames = values["collect_steps_per_iteration"] * values["num_envs"]
        if not size or frames % size:
            return changes
        number = frames // size
        multiple = number // math.gcd(number, num_envs)
        steps = max(round(changes["collect_steps_per_iteration"] / multiple), 1)
        changes["collect_steps_per_iteration"] = steps * multiple
        return {**changes, "minibatch_size": steps * multiple * num_envs // number}

    def make_loop(self, agent: agents.TFAgent) -> train.OnPolicyLoop:
        """Makes the loop; see `Algorithm.make_loop` and `parts.on_policy_loop`."""
        return parts.on_policy_loop(
            self,
            agent,
            self.collect_steps_per_iteration,
            num_epochs=self.num_epochs,
            minibatch_size=self.minibatch_size or None,
            **self.further_loop_arguments(),
        )

    def further_loop_arguments(self) -> dict[str, Any]:
        """Returns the loop's arguments that only some algorithms have."""
        return {}

    @property
    def updates_per_iteration(self) -> int:
        """The updates in an iteration, which collects a rollout."""
        minibatches = 1
        if self.minibatch_size:
            # The loop refuses minibatches that are larger than a rollout.
            minibatches = max(self.steps_per_iteration // self.minibatch_size, 1)
        return self.num_epochs * minibatches


class PolicyGradient(mixins.Entropy, mixins.Lambda, Learner):
    """An actor and a critic with one loss."""

    takes_masks = True
    has_own_critics = True

    activation: str = "tanh"

    share_layers: bool = field(
        "Actor and critic share the layers before an LSTM or their outputs.",
        default=False,
    )
    value_loss_weight: float = live(
        "Weight of the squared error of the values.", FROM_0, default=0.5
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the critic."""
        actor, critic = self._make_both(self.actor_spec)
        if self.has_critic_part:
            if self.share_layers:
                raise ValueError(
                    "share_layers: expected False, since the critic sees another part "
                    f"of observations, {spaces.CRITIC!r}, got True; "
                    f"{remedy_for('share_layers')}."
                )
            _, critic = self._make_both(self.critic_spec)
        return {"actor_net": actor, "value_net": critic}

    def _make_both(self, observation_spec: Any) -> tuple[Any, Any]:
        """Makes an actor and a critic of the same observations."""
        return agents.ppo.ppo_networks.create_networks(
            observation_spec,
            self.environment.action_spec(),
            fc_layer_params=self.fc_layer_params,
            share_layers=self.share_layers,
            conv_layer_params=self.conv_layer_params or None,
            encoder=self.own_encoder,
            **parts.activation(self),
            dtype=self.dtype,
            seed=self.seed,
            **self.further_network_arguments(),
        )

    def further_network_arguments(self) -> dict[str, Any]:
        """Returns the networks' arguments that only some algorithms have."""
        return {}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "optimizer": parts.adam(self.scheduled(self.learning_rate), epsilon=1e-5),
            "discount_factor": self.gamma,
            "lambda_value": self.lambda_value,
            "entropy_regularization": self.entropy_regularization,
            "value_pred_loss_coef": self.value_loss_weight,
        }
