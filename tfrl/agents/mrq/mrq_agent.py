"""MR.Q: an actor and critics on embeddings that predict what follows.

An encoder z_s = f(s), z_sa = g(z_s, a) learns by a rollout of H steps from each first
state: a linear function of z_sa predicts the next embedding, the reward (in bins) and
whether the episode ends, and the prediction takes the place of the next embedding:

    sum_t |z_t - f'(s_t)|^2 + 0.1 CE(r_t) + 0.1 (e_t - end_t)^2

Two critics of z_sa learn n-step returns in units of the mean size of rewards,

    y = (r + gamma^n d scale' min_i Q_i'(g'(f'(s_n), a'))) / scale

with a' of the target actor with noise, and the actor mu maximises the mean of both
critics, with a small penalty on its outputs before their activation. Neither gradient
reaches the encoder. The networks with a prime are targets, copied every 250 updates.
Fujimoto et al., "Towards general-purpose model-free reinforcement learning" (2025,
arXiv:2501.16142), section 4 and appendix B.

Critics and actor use an encoder that stays the same for a period of 250 updates. The
paper trains it in a burst of 250 updates at the start of the period. Here a copy is
trained meanwhile, one update in each train step, and comes into use at the end of the
period: the same number of updates, from frames that are 125 steps older on average,
but no step takes longer than another.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    checks,
    critics,
    data_converter,
    measures,
    normalization,
    options,
    target_networks,
    td_losses,
    tf_agent,
    transitions,
    unit_actions,
    updates,
)
from tfrl.agents.mrq import (
    image_shifts,
    mrq_networks,
    noisy_choice_policy,
    reward_scale,
)
from tfrl.compilation import accelerators, variable_substitution
from tfrl.losses import masking
from tfrl.networks import network as network_lib
from tfrl.networks import sequential
from tfrl.networks import utils as network_utils
from tfrl.policies import actor_policy, gaussian_policy, greedy_policy
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.trajectories import transitions as transitions_lib
from tfrl.typing import types
from tfrl.utils import common, number_checks
from tfrl.utils.optimization import optimizers
from tfrl.utils.random_numbers import seeds

# Of the paper: from -22,025 to 22,025.
_REWARD_BINS = losses.TwoHot(-10.0, 10.0, 65)


class MrqInfo(NamedTuple):
    """Details of the loss.

    Attributes:
      encoder_loss: The mean loss of the rollouts, a scalar.
      critic_loss: The mean loss of both critics together, a scalar.
      actor_loss: The mean of minus the values of the actor's actions, with the penalty,
        a scalar.
      td_loss: The loss of both critics for each example before weighting, `[B]`, zero
        where masked.
      td_error: Target minus prediction, `[B]`, in units of the mean size of rewards, of
        the critic with the larger error.
    """

    encoder_loss: tf.Tensor
    critic_loss: tf.Tensor
    actor_loss: tf.Tensor
    td_loss: Any = ()
    td_error: Any = ()


class MrqData(NamedTuple):
    """Sequences for the losses.

    Attributes:
      transitions: The transitions over the steps of the returns, `[B, ...]`.
      actions: The actions as vectors, `[B, H, A]`; see `unit_actions`.
      rewards: The rewards, `[B, H]`.
      ends: 1 minus the environment's discounts, `[B, H]`.
      valid: True for each step of the first step's episode, False after it, `[B, H]`.
      states: The embeddings in use of the states, `[B, H + 1, n]`.
      reached: The target embeddings of the states at which the returns end, `[B, n]`.
    """

    transitions: transitions.Transitions
    actions: tf.Tensor
    rewards: tf.Tensor
    ends: tf.Tensor
    valid: tf.Tensor
    states: tf.Tensor
    reached: tf.Tensor


class MrqAgent(tf_agent.TFAgent):
    """An MR.Q agent, for one array of continuous actions or for one discrete action.

    `train` updates the encoder, the critics and the actor, and returns each loss as it
    was before its own update. The experience of `train` is a `Trajectory`: a transition
    alone shows no rollout.

    `update_normalizers` adds frames to the mean size of rewards.
    """

    _info = MrqInfo

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.TensorSpec,
        state_encoder: types.Network | types.Layer,
        state_action_encoder: types.Network | types.Layer,
        actor_network: types.Network | types.Layer,
        critic_network: types.Network | types.Layer,
        encoder_optimizer: types.Optimizer | None,
        actor_optimizer: types.Optimizer | None,
        critic_optimizer: types.Optimizer | None,
        *,
        horizon: int = 5,
        exploration_noise_std: types.FloatOrSchedule = 0.2,
        target_policy_noise: float = 0.2,
        target_policy_noise_clip: float = 0.3,
        reward_loss: losses.TwoHot = _REWARD_BINS,
        reward_loss_weight: float = 0.1,
        termination_loss_weight: float = 0.1,
        activation_penalty: float = 1e-5,
        image_shift: int = 4,
        **settings: Unpack[options.Settings],
    ) -> None:
        """Builds the networks in use, their targets and the policies.

        `make_networks` makes the networks of the paper, and `MrqNetworks` says what
        they map. The optimizers of the paper are AdamW with a decay of 1e-4, with the
        rates 1e-4 for the encoder and 3e-4 for the others; None is for an agent that
        never trains.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded float spec, or one scalar bounded integer spec.
          state_encoder: The encoder f of observations.
          state_action_encoder: The encoder g of embeddings and actions.
          actor_network: The actor.
          critic_network: All critics, such as a `CriticEnsembleNetwork`.
          encoder_optimizer: The optimizer of the encoder.
          actor_optimizer: The optimizer of the actor.
          critic_optimizer: The optimizer of the critics.
          horizon: The number H of steps of a rollout; `train` takes experience with `T`
            one more than `horizon` or `n_step_update`.
          exploration_noise_std: The standard deviation of the noise on collected
            actions, in units of half of each action's range: 1 for a continuous action
            in [-1, 1], and 0.5 for the shares of a discrete one. A Keras schedule
            follows the train step counter.
          target_policy_noise: The same, of the noise on the target actor's actions.
          target_policy_noise_clip: The largest absolute value of this noise.
          reward_loss: The bins of the predicted rewards.
          reward_loss_weight: The weight of the rewards in the encoder's loss.
          termination_loss_weight: The weight of terminations in the encoder's loss,
            which count only once there has been one.
          activation_penalty: The weight of the mean square of the actor's outputs.
          image_shift: The largest random shift of images, in pixels; see
            `image_shifts.shifted`.
          **settings: See `TdOptions` and `AgentOptions`. The defaults are
            `target_update_period=250`, `gamma=0.99`, `n_step_update=3` and
            `gradient_clipping=20`, which is the norm of the gradients of all critics
            together. `target_update_tau` is 1.

        Raises:
          ValueError: An action has no finite bounds or is one of several, a number is
            out of range, or a network does not fit.
          NotImplementedError: A network is recurrent.
        """
        td, common_options = options.from_settings(
            type(self),
            settings,
            target_update_period=250,
            gamma=0.99,
            n_step_update=3,
            gradient_clipping=20.0,
        )
        _check_numbers(td, horizon, image_shift, activation_penalty)
        time_step_spec = checks.as_time_step_spec(time_step_spec, "MR.Q")
        self._set_untracked("_actions", unit_actions.of(action_spec))
        actions = self._actions
        counter = checks.as_train_step_counter(common_options.train_step_counter)
        observation_spec = time_step_spec.observation
        (state_encoder,) = normalization.normalized_networks(
            common_options.observation_normalizer, observation_spec, state_encoder
        )
        state_encoder = network_lib.as_network(state_encoder, observation_spec)
        state_spec = state_encoder.create_variables(observation_spec)
        pair_spec = (state_spec, tf.TensorSpec([actions.size], tf.float32))
        pair = target_networks.with_target
        # The encoder that is trained, the one in use, and the target of that one.
        learning_states, states = pair(
            state_encoder, None, "StateEncoderInUse", observation_spec
        )
        learning_pairs, pairs = pair(
            state_action_encoder, None, "StateActionEncoderInUse", pair_spec
        )
        pair_embedding = learning_pairs.create_variables()
        seed = common_options.seed
        num_outputs = state_spec.shape[0] + reward_loss.num_bins + 1
        model = _make_model(pair_embedding, num_outputs, seed)
        _, target_states = pair(states, None, "TargetStateEncoder", observation_spec)
        _, target_pairs = pair(pairs, None, "TargetStateActionEncoder", pair_spec)
        actor, target_actor = pair(actor_network, None, "TargetActor", state_spec)
        network_utils.check_single_floating_network_output(
            actor.create_variables(), (actions.size,), label=actor.name
        )
        critic, target_critic = pair(
            critic_network, None, "TargetCritic", (pair_embedding, ())
        )
        if not critics.check_ensemble(critic, None):
            critics.check_gives_numbers(critic)
        checks.check_not_recurrent(
            [learning_states, learning_pairs, actor, critic], "MR.Q"
        )
        acting = mrq_networks.ActingNetwork(states, actor, actions)
        policies = _make_policies(
            time_step_spec, actions, acting, exploration_noise_std, counter, seed
        )
        super().__init__(
            time_step_spec,
            actions.spec,
            *policies,
            train_sequence_length=max(horizon, td.n_step_update) + 1,
            **{**common_options.of_base(), "train_step_counter": counter},
        )
        self._learning_states, self._states = learning_states, states
        self._learning_pairs, self._pairs = learning_pairs, pairs
        self._target_states, self._target_pair_encoder = target_states, target_pairs
        self._actor, self._target_actor = actor, target_actor
        self._critic, self._target_critic = critic, target_critic
        self._model = model
        # In the order in which `initialize` copies weights; a period begins in reverse.
        self._target_pairs = [
            (learning_states, states),
            (learning_pairs, pairs),
            (states, target_states),
            (pairs, target_pairs),
            (actor, target_actor),
            (critic, target_critic),
        ]
        self._reward_scale = reward_scale.RewardScale()
        self._untrained = [self._reward_scale]
        self._period = td.target_update_period
        self._gamma = td.gamma
        self._reward_scale_factor = td.reward_scale_factor
        self._td_errors_loss_fn = td.td_errors_loss_fn or common.element_wise_huber_loss
        self._horizon = horizon
        self._noise = target_policy_noise, target_policy_noise_clip
        self._reward_loss = reward_loss
        self._loss_weights = reward_loss_weight, termination_loss_weight
        self._activation_penalty = activation_penalty
        self._image_shift = image_shift if image_shifts.are_any(observation_spec) else 0
        self._num_frames = td.n_step_update + 1
        self._as_frames = data_converter.AsTrajectory(
            self.data_context, self.train_sequence_length
        )
        self._as_transitions = transitions.Reader(self.data_context, td, False)
        number = seeds.draw_number() if seed is None else seed
        self._seed = tf.Variable(number, dtype=tf.int64, trainable=False, name="seed")
        clip = optimizers.all_to_norm(td.gradient_clipping)
        self._parts = [
            updates.Part(
                "encoder",
                self._encoder_loss,
                [learning_states, learning_pairs, model],
                encoder_optimizer,
            ),
            updates.Part(
                "critic", self._critic_loss, [critic], critic_optimizer, clip=clip
            ),
            updates.Part("actor", self._actor_loss, [actor], actor_optimizer),
        ]

    def update_normalizers(self, frames: trajectory.Trajectory) -> None:
        """Adds frames to the mean size of rewards, too; see `TFAgent`."""
        super().update_normalizers(frames)
        reward = self._normalizers.normalize_rewards(frames).reward
        self._reward_scale.update(
            frames._replace(reward=self._reward_scale_factor * reward)
        )

    def _train(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> tf_agent.LossInfo:
        """Begins a period if one is due, and updates the parts."""
        is_due = self.train_step_counter % self._period == 0
        variable_substitution.cond(is_due, self._begin_period)
        return super()._train(experience, weights, *args, **kwargs)

    def _begin_period(self) -> None:
        """Copies the targets, takes the trained encoder into use, sets the scale."""
        updates.copy_weights(self._target_pairs[::-1])
        self._reward_scale.advance()

    def _prepare(self, experience: Any, weights: tf.Tensor | None = None) -> MrqData:
        """Returns the sequences of frames, with embeddings that get no gradient."""
        del weights
        if not hasattr(experience, "next_step_type"):
            raise TypeError(
                f"experience: got a {type(experience).__name__}, expected a Trajectory "
                f"of {self.train_sequence_length} frames, from which MR.Q learns to "
                "predict; sample with num_steps=agent.train_sequence_length."
            )
        frames = self._as_frames(experience)
        if self._image_shift:
            frames = frames._replace(observation=self._shifted(frames.observation))
        steps = self._as_transitions(_first(frames, self._num_frames))
        frames = _first(frames, self._horizon + 1)
        valid = transitions_lib.inside_episode(frames)
        states, _ = self._states(frames.observation, step_type=frames.step_type)
        reward = tf.cast(frames.reward[:, :-1], tf.float32)
        reached = critics.outputs(self._target_states, steps.next_time_step)
        return MrqData(
            steps,
            self._actions.vectors(frames.action)[:, :-1],
            masking.masked(self._reward_scale_factor * reward, valid),
            masking.masked(1.0 - frames.discount[:, :-1], valid),
            valid,
            tf.stop_gradient(states),
            tf.stop_gradient(reached),
        )

    def _shifted(self, observation: Any) -> Any:
        counter = tf.cast(self.train_step_counter, tf.int64)
        # Not a seed of a part, which counts from 0.
        seed = tf.stack([self._seed, -1 - counter])
        spec = self.time_step_spec.observation
        return image_shifts.shifted(observation, spec, self._image_shift, seed)

    def _encoder_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of the rollouts' losses, summed over their steps."""
        of_states, of_rewards, of_ends = self._rollout_losses(batch)
        of_reward, of_end = self._loss_weights
        seen = self._reward_scale.ends
        each = of_states + of_reward * of_rewards + of_end * seen * of_ends
        per_example = tf.reduce_sum(each, axis=1)
        loss = losses.aggregate_losses(per_example, batch.weights).total_loss
        return loss, {}

    def _rollout_losses(
        self, batch: updates.Batch
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the losses of states, rewards and ends, `[B, H]`, 0 where masked."""
        data: MrqData = batch.data
        state = critics.outputs(
            self._learning_states, data.transitions.time_step, batch.training
        )
        size = state.shape[-1]
        predictions = []
        for t in range(self._horizon):
            embedding, _ = self._learning_pairs(
                (state, data.actions[:, t]), training=batch.training
            )
            prediction, _ = self._model(embedding)
            state, *others = tf.split(
                prediction, [size, self._reward_loss.num_bins, 1], axis=-1
            )
            predictions.append((state, *others))
        states, rewards, ends = (
            tf.stack(each, axis=1) for each in zip(*predictions, strict=True)
        )
        found = losses.latent_rollout_losses(
            (states, rewards, tf.squeeze(ends, -1)),
            (data.states[:, 1:], data.rewards, data.ends),
            self._reward_loss,
        )
        of_states, of_rewards, of_ends = (
            masking.masked(each, data.valid) for each in found
        )
        return of_states, of_rewards, of_ends

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `sum_i L(y - Q_i(z_sa))`, and its details."""
        data: MrqData = batch.data
        outputs, _ = self._target_actor(data.reached)
        actions = self._actions.smoothed(outputs, batch.seed, *self._noise)
        next_values = self._values(
            self._target_pair_encoder, self._target_critic, data.reached, actions
        )
        smallest = losses.clipped_double_q(tf.unstack(next_values, axis=-1))
        targets = data.transitions.targets(self._reward_scale.before * smallest)
        targets = tf.stop_gradient(targets / self._reward_scale.now)
        predictions = self._values(
            self._pairs,
            self._critic,
            data.states[:, 0],
            data.actions[:, 0],
            batch.training,
        )
        loss_fn = functools.partial(
            td_losses.per_transition,
            self._td_errors_loss_fn,
            valid=data.transitions.valid,
            agent=type(self).__name__,
        )
        pairs = [
            critics.td_errors(targets, each, loss_fn)
            for each in tf.unstack(predictions, axis=-1)
        ]
        each_loss, errors = zip(*pairs, strict=True)
        td_loss = data.transitions.per_example(tf.add_n(each_loss))
        td_error = masking.masked(losses.largest_error(errors), data.transitions.valid)
        aggregated = losses.aggregate_losses(
            td_loss, batch.weights, regularization_loss=self._critic.losses
        )
        return aggregated.total_loss, {"td_loss": td_loss, "td_error": td_error}

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of minus the critics' mean, with the penalty."""
        data: MrqData = batch.data
        states = data.states[:, 0]
        outputs, _ = self._actor(states, training=batch.training)
        actions = self._actions.activated(outputs, batch.seed)
        values = self._values(self._pairs, self._critic, states, actions)
        penalty = tf.reduce_mean(tf.square(outputs), axis=-1)
        loss = self._activation_penalty * penalty - tf.reduce_mean(values, axis=-1)
        per_step = batch._replace(data=data.transitions)
        return critics.mean(loss, per_step, self._actor), {}

    def _values(
        self,
        encoder: Any,
        critic: Any,
        states: tf.Tensor,
        actions: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the values of embedded states and of vectors of actions, `[B, N]`."""
        embedding, _ = encoder((states, actions))
        values: tf.Tensor
        values, _ = critic((embedding, ()), training=training)
        return values if values.shape.rank == 2 else values[:, tf.newaxis]

    def _state_values(self, time_step: ts.TimeStep) -> tf.Tensor:
        """Returns the values of the greedy actions, in the rewards' units."""
        states = critics.outputs(self._states, time_step)
        outputs, _ = self._actor(states)
        values = self._values(
            self._pairs, self._critic, states, self._actions.greedy(outputs)
        )
        return self._reward_scale.now * tf.reduce_mean(values, axis=-1)

    def _log_values(self) -> dict[str, tf.Tensor]:
        return {"reward_scale": self._reward_scale.now}

    def _measure(self, batch: updates.Batch) -> dict[str, tf.Tensor]:
        """Returns numbers of the critics, the actor and the rollouts' losses."""
        data: MrqData = batch.data
        valid = data.transitions.valid
        extra = self._loss_of_parts(batch).extra
        values = self._values(
            self._pairs, self._critic, data.states[:, 0], data.actions[:, 0]
        )
        actions = self.policy.action(data.transitions.time_step, seed=(0, 0)).action
        names = "state_loss", "reward_loss", "termination_loss"
        parts = zip(names, self._rollout_losses(batch), strict=True)
        counts = tf.cast(valid, tf.float32)
        return {
            **measures.of_values(
                tf.reduce_mean(values, axis=-1), extra.td_error, valid
            ),
            **measures.of_actions(actions, self.action_spec, counts),
            **{name: losses.masked_mean(each, data.valid) for name, each in parts},
        }


def _make_model(input_spec: Any, num_outputs: int, seed: int | None) -> Any:
    """Makes the linear function that predicts the state, the reward and the end."""
    model = sequential.Sequential(
        [mrq_networks.last_layer(num_outputs)], input_spec, "Model", seed=seed
    )
    model.create_variables()
    return model


def _make_policies(
    time_step_spec: ts.TimeStep,
    actions: unit_actions.UnitActions,
    acting: mrq_networks.ActingNetwork,
    noise: Any,
    counter: tf.Variable,
    seed: int | None,
) -> tuple[Any, Any]:
    """Returns the policy to evaluate and the policy that explores."""
    policy = actor_policy.ActorPolicy(time_step_spec, actions.spec, acting, seed=seed)
    if isinstance(actions, unit_actions.Choice):
        exploring = noisy_choice_policy.NoisyChoicePolicy(
            policy, actions, noise, step=counter, seed=seed
        )
        return greedy_policy.GreedyPolicy(policy), exploring
    unclipped = actor_policy.ActorPolicy(
        time_step_spec, actions.spec, acting, clip=False, seed=seed
    )
    return policy, gaussian_policy.GaussianPolicy(
        unclipped, scale=noise, step=counter, seed=seed, scaled_to_spec=True
    )


def _first(frames: Any, number: int) -> Any:
    """Returns the first frames of sequences `[B, T, ...]`."""
    return accelerators.map_moved(lambda t: t[:, :number], frames)


def _check_numbers(
    td: options.TdOptions, horizon: Any, image_shift: Any, penalty: Any
) -> None:
    if td.target_update_tau != 1.0:
        raise ValueError(
            f"target_update_tau: got {td.target_update_tau}, expected 1, since MR.Q "
            "copies the weights to its targets; set target_update_period."
        )
    number_checks.check_integer(
        "target_update_period", td.target_update_period, 1, remedy="250 is usual"
    )
    number_checks.check_integer("horizon", horizon, 1, remedy="5 is usual")
    number_checks.check_integer(
        "image_shift", image_shift, 0, remedy="4 is usual, and 0 shifts no image"
    )
    number_checks.check_number(
        "activation_penalty", penalty, 0.0, remedy="1e-5 is usual, and 0 is none"
    )
