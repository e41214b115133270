"""DreamerV3: an actor and a critic that learn in the imagination of a world model.

The world model follows the states of replayed sequences, and learns to predict
observations, rewards and ends of episodes from them; its prior learns to predict the
posterior (`rssm`). From every replayed state, the actor acts for H imagined steps. The
critic learns lambda-returns R of these steps, in bins, and the actor minimises

    -sg((R - v) / max(1, S)) log pi(a|s) - eta H[pi(.|s)],

where S is a running range of the returns. All networks share one optimizer. Hafner et
al., "Mastering diverse control tasks through world models" (Nature, 2025;
arXiv:2301.04104), equations 4 to 13.

A frame of `Trajectory` holds an observation, the action taken there and the reward that
follows. The reward and the end that lead to an observation are those of the frame
before. The last observation of an episode is in its boundary frame.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks, data_converter, tf_agent, updates
from tfrl.agents.dreamer import choices, dreamer_networks, dreamer_policy, rssm
from tfrl.compilation import accelerators, replicas
from tfrl.losses import masking
from tfrl.policies import state_recording_policy
from tfrl.trajectories import episodes, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common, nest_utils, number_checks
from tfrl.utils.optimization import optimizers
from tfrl.utils.random_numbers import seeds

BINS = dreamer_networks.BINS


class DreamerInfo(NamedTuple):
    """Details of the loss, each a scalar, and the states.

    Attributes:
      reconstruction_loss: The loss of the predicted observations.
      reward_loss: The loss of the predicted rewards.
      continue_loss: The loss of the predicted ends.
      dynamics_loss: The divergence that trains the prior.
      representation_loss: The divergence that trains the posterior.
      actor_loss: The loss of the actor.
      critic_loss: The loss of the critic on imagined states.
      replay_critic_loss: The loss of the critic on replayed states.
      states: The state after each observation, `[B, T, ...]`; see `rssm.State`.
    """

    reconstruction_loss: tf.Tensor
    reward_loss: tf.Tensor
    continue_loss: tf.Tensor
    dynamics_loss: tf.Tensor
    representation_loss: tf.Tensor
    actor_loss: tf.Tensor
    critic_loss: tf.Tensor
    replay_critic_loss: tf.Tensor
    states: rssm.State


class Sequences(NamedTuple):
    """Replayed sequences, as the model sees them.

    Attributes:
      observation: The observations, `[B, T, ...]`.
      before: The actions before them, as vectors, `[B, T, A]`.
      reward: The rewards that led to them, `[B, T]`.
      ends: 1 where an observation ended its episode by a termination, `[B, T]`.
      is_first: Whether each is the first of its episode, `[B, T]`.
      is_last: Whether each is the last of its episode, `[B, T]`.
      knows_reward: Whether `reward` and `ends` are known, `[B, T]`.
      is_cut: Whether each does not follow from the one before, `[B, T]`.
      start: The state before the first observation.
      weights: The weight of each loss, a scalar, `[B]` or `[B, T]`; None for 1.
    """

    observation: Any
    before: tf.Tensor
    reward: tf.Tensor
    ends: tf.Tensor
    is_first: tf.Tensor
    is_last: tf.Tensor
    knows_reward: tf.Tensor
    is_cut: tf.Tensor
    start: rssm.State
    weights: tf.Tensor | None


class Imagined(NamedTuple):
    """Imagined steps, `[H, N, ...]`, none of which has a gradient.

    Attributes:
      features: The features of the states.
      actions: The actions taken there, as vectors.
      returns: The lambda-returns after them.
      values: The values of the states.
      weights: The probabilities that the episode goes on until then, discounted.
    """

    features: tf.Tensor
    actions: tf.Tensor
    returns: tf.Tensor
    values: tf.Tensor
    weights: tf.Tensor


class DreamerAgent(tf_agent.TFAgent):
    """A DreamerV3 agent, for continuous actions in one array or one discrete action.

    The experience of `train` are sequences of any length of at least 2 frames, which
    may begin anywhere in an episode.
    """

    _info = DreamerInfo

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.TensorSpec,
        optimizer: types.Optimizer | None,
        *,
        sizes: rssm.Sizes = rssm.SIZES["1m"],
        imagination_length: int = 15,
        gamma: types.Float = 0.997,
        lambda_value: float = 0.95,
        entropy_regularization: float = 3e-4,
        free_nats: float = 1.0,
        reconstruction_weight: types.Float = 1.0,
        dynamics_weight: float = 1.0,
        representation_weight: float = 0.1,
        replay_critic_weight: float = 0.3,
        average_rate: float = 0.02,
        range_rate: float = 0.01,
        adaptive_clipping: float | None = 0.3,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        seed: int | None = None,
    ) -> None:
        """Builds the networks and the policies.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded float spec, or one scalar bounded integer spec.
          optimizer: The optimizer of all networks, such as
            `utils.optimization.LaProp(4e-5)`; None for an agent that never trains.
          sizes: The sizes of the networks; see `rssm.SIZES`.
          imagination_length: The steps imagined from each replayed state.
          gamma: The discount factor; 1 - 1 / 333 is usual.
          lambda_value: The lambda of the returns.
          entropy_regularization: The weight of the actor's entropy.
          free_nats: The divergence below which the model is not trained further.
          reconstruction_weight: The weight of the loss of the predicted observations.
          dynamics_weight: The weight of the loss that trains the prior.
          representation_weight: The weight of the loss that trains the posterior.
          replay_critic_weight: The weight of the critic's loss on replayed states.
          average_rate: The step of the critic's average towards the critic.
          range_rate: The step of the range of returns towards that of a batch.
          adaptive_clipping: The largest norm of a gradient, relative to the norm of its
            weights; None does not clip.
          debug_summaries: See `AgentOptions`.
          summarize_grads_and_vars: See `AgentOptions`.
          train_step_counter: See `AgentOptions`.
          name: See `AgentOptions`.
          seed: Seeds networks, losses and policies; None draws a seed.

        Raises:
          ValueError: An action has no finite bounds or is one of several, or a number
            is out of range.
        """
        number_checks.check_integer(
            "imagination_length", imagination_length, 1, remedy="15 is usual"
        )
        checks.check_gamma(gamma)
        time_step_spec = checks.as_time_step_spec(time_step_spec, "DreamerV3")
        actor = choices.of(action_spec)
        self._set_untracked("_reading", actor)
        network_seeds = [None] * 3 if seed is None else [seed, seed + 1, seed + 2]
        model = dreamer_networks.WorldModel(
            time_step_spec.observation, actor.actions.size, sizes, network_seeds[0]
        )
        head = dreamer_networks.Head(
            sizes, actor.num_outputs, "actor", seed=network_seeds[1]
        )

        def make_critic(name: str) -> dreamer_networks.Head:
            return dreamer_networks.Head(
                sizes, BINS.num_bins, name, zero=True, seed=network_seeds[2]
            )

        def make_policy(greedy: bool) -> dreamer_policy.DreamerPolicy:
            return dreamer_policy.DreamerPolicy(
                time_step_spec, actor, model, head, greedy=greedy, seed=seed
            )

        super().__init__(
            time_step_spec,
            actor.actions.spec,
            make_policy(True),
            state_recording_policy.StateRecordingPolicy(make_policy(False), seed=seed),
            train_sequence_length=None,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
        )
        self._model, self._actor_head = model, head
        self._critic = make_critic("critic")
        self._average_critic = make_critic("average_critic")
        self._imagination_length = imagination_length
        self._gamma = gamma
        self._lambda = lambda_value
        self._entropy_regularization = entropy_regularization
        self._free_nats = free_nats
        self._reconstruction_weight = reconstruction_weight
        self._weights = dynamics_weight, representation_weight, replay_critic_weight
        self._range_rate = range_rate
        self._range = tf.Variable(0.0, trainable=False, name="range")
        self._target_pairs = [(self._critic, self._average_critic)]
        self._update_target = updates.make_updater(self._target_pairs, average_rate, 1)
        number = seeds.draw_number() if seed is None else seed
        self._seed = tf.Variable(number, dtype=tf.int64, trainable=False, name="seed")
        self._as_frames = data_converter.AsTrajectory(self.data_context)
        trained = [model, head, self._critic]
        variables = [v for module in trained for v in module.trainable_variables]
        clip = optimizers.to_share_of_weights(variables, adaptive_clipping)
        self._parts = [
            updates.Part("whole", self._whole, trained, optimizer, clip=clip)
        ]

    def _variables(self) -> list[tf.Variable]:
        return [*super()._variables(), self._range]

    def _prepare(self, experience: Any, weights: Any = None) -> Sequences:
        """Returns the frames as the model sees them."""
        frames: trajectory.Trajectory = self._as_frames(experience)
        vectors = self._reading.actions.vectors(frames.action)
        is_first, is_last = frames.is_first(), frames.is_boundary()
        follows = tf.pad(episodes.follows(frames), [[0, 0], [1, 0]])
        recorded = state_recording_policy.recorded_state(
            frames.policy_info, self.collect_policy.policy_state_spec
        )
        recorded = accelerators.map_moved(lambda x: x[:, 0], recorded)
        before = tf.concat([recorded["action"][:, tf.newaxis], vectors[:, :-1]], axis=1)
        knows = is_first | follows
        arrives = follows & ~is_first
        reward = tf.pad(tf.cast(frames.reward, tf.float32)[:, :-1], [[0, 0], [1, 0]])
        ends = tf.pad(1.0 - frames.discount[:, :-1], [[0, 0], [1, 0]])
        # The first frame follows from the state that the policy recorded.
        is_cut = ~follows & (tf.range(tf.shape(follows)[1]) > 0)
        return Sequences(
            frames.observation,
            before,
            masking.masked(reward, arrives),
            masking.masked(ends, arrives),
            is_first,
            is_last,
            knows,
            is_cut,
            rssm.State(recorded["deter"], recorded["stoch"]),
            weights,
        )

    def _log_values(self) -> dict[str, tf.Tensor]:
        return {"return_range": self._range.read_value()}

    def _measure(self, batch: updates.Batch) -> dict[str, tf.Tensor]:
        """Returns the parts of the loss."""
        found: dict[str, Any] = self._whole(batch)[1]["extra"]._asdict()
        del found["states"]
        return found

    @property
    def refreshes_experience(self) -> bool:
        """Whether updates find newer states than those that the policy recorded."""
        return True

    def refreshed(self, experience: Any, loss_info: tf_agent.LossInfo) -> Any:
        """Returns the frames with the states that an update found before them."""
        spec = self.collect_policy.policy_state_spec
        old = state_recording_policy.recorded_state(experience.policy_info, spec)
        follows = tf.pad(episodes.follows(experience), [[0, 0], [1, 0]])
        arrives = follows & ~experience.is_first()
        vectors = self._reading.actions.vectors(experience.action)
        after = {**loss_info.extra.states._asdict(), "action": vectors}
        new = {
            name: nest_utils.where(
                arrives, tf.concat([x[:, :1], after[name][:, :-1]], axis=1), x
            )
            for name, x in old.items()
        }
        info = {**experience.policy_info, state_recording_policy.POLICY_STATE: new}
        return experience._replace(policy_info=info)

    def open_loop(
        self, experience: Any, num_given: int = 5
    ) -> list[tuple[tf.Tensor, tf.Tensor]]:
        """Predicts the observations of sequences from the first of them.

        Args:
          experience: Sequences `[B, T, ...]`, as for `train`. Their actions are taken.
          num_given: How many observations the model sees.

        Returns:
          A pair for each array of an observation: what was observed and what the model
          predicts, each images `[B, T, h, w, c]` from 0 to 1, or vectors `[B, T, n]`.
        """
        data = self._prepare(experience)
        batch_size, length = tf.unstack(tf.shape(data.reward))
        deters, _, stochs = self._follow(
            data, seeds.as_seed(0), sees=tf.range(length) < num_given
        )

        features = rssm.State(_flat(deters), _flat(stochs)).features()
        pairs = self._model.compared(
            features, tf.nest.map_structure(_flat, data.observation)
        )
        return tf.nest.map_structure(
            lambda x: tf.reshape(x, [batch_size, length, *x.shape[1:]]), pairs
        )

    def _whole(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the sum of all losses, and each as a detail."""
        data: Sequences = batch.data
        model_seed, own_seed = seeds.split_seed(batch.seed, 2)
        deters, posteriors, stochs = self._follow(data, model_seed)
        batch_size, length = tf.unstack(tf.shape(data.reward))

        states = rssm.State(_flat(deters), _flat(stochs))
        features = states.features()
        priors = self._model.rssm.prior(states.deter)
        dynamics, representation = losses.balanced_kl(
            _flat(posteriors), priors, self._free_nats
        )
        knows = _flat(data.knows_reward)
        going = (1.0 - _flat(data.ends)) * self._gamma
        imagined = self._imagine(states, own_seed)
        each = {
            "reconstruction_loss": tf.cast(self._reconstruction_weight, tf.float32)
            * self._model.reconstruction_loss(
                features, tf.nest.map_structure(_flat, data.observation)
            ),
            "reward_loss": masking.masked(
                BINS(_flat(data.reward), self._model.reward_logits(features)), knows
            ),
            "continue_loss": masking.masked(
                tf.nn.sigmoid_cross_entropy_with_logits(
                    going, self._model.continue_logits(features)
                ),
                knows,
            ),
            "dynamics_loss": self._weights[0] * dynamics,
            "representation_loss": self._weights[1] * representation,
            **self._of_imagination(imagined, batch.training),
            "replay_critic_loss": self._weights[2]
            * self._of_replay(data, features, imagined.returns[0]),
        }
        found = {
            name: losses.aggregate_losses(
                tf.reshape(loss, [batch_size, length]), data.weights
            ).weighted
            for name, loss in each.items()
        }
        total = tf.add_n(list(found.values()))
        after = rssm.State(deters, stochs)
        return total, {"extra": DreamerInfo(**found, states=after)}

    def _follow(
        self, data: Sequences, seed: tf.Tensor, sees: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Follows sequences by their observations, of the steps `sees` if given.

        Returns the deterministic parts `[B, T, D]`, and the logits and the draws of the
        posterior, `[B, T, S, C]`.
        """
        model, sizes = self._model.rssm, self._model.sizes
        batch_size, length = tf.unstack(tf.shape(data.reward))
        tokens = self._model.embed(tf.nest.map_structure(_flat, data.observation))
        tokens = tf.reshape(tokens, [batch_size, length, tokens.shape[-1]])
        noise = rssm.gumbel(seed, [batch_size, length, sizes.stoch, sizes.classes])
        begins = data.is_first | data.is_cut

        def step(state: Any, inputs: Any) -> tuple[Any, Any]:
            token, action, starts, noise, *seen = inputs
            state, action = tf.nest.map_structure(
                lambda x: masking.masked(x, _like(~starts, x)), (state, action)
            )
            deter = model.advance(state, action)
            logits = model.posterior(deter, token)
            if seen:
                logits = tf.where(seen[0], logits, model.prior(deter))
            state = rssm.State(deter, rssm.sample(logits, noise))
            return state, (deter, logits, state.stoch)

        inputs = (tokens, data.before, begins, noise)
        inputs = tf.nest.map_structure(common.transpose_batch_time, inputs)
        inputs = (*inputs, *([] if sees is None else [sees]))
        outputs = rssm.unroll(step, data.start, inputs)
        return tf.nest.map_structure(common.transpose_batch_time, outputs)

    def _imagine(self, states: rssm.State, seed: tf.Tensor) -> Imagined:
        """Acts from states `[N, ...]`; no gradient flows through what is imagined."""
        model, sizes = self._model.rssm, self._model.sizes
        start = tf.nest.map_structure(tf.stop_gradient, states)
        number, length = tf.shape(start.deter)[0], self._imagination_length
        state_seed, action_seed = seeds.split_seed(seed, 2)
        shape = [length, number, sizes.stoch, sizes.classes]
        noise = rssm.gumbel(state_seed, shape, batch_axis=1)
        action_seeds = tf.stack(seeds.split_seed(action_seed, length))

        def step(state: Any, inputs: Any) -> tuple[Any, Any]:
            noise, own_seed = inputs
            features = state.features()
            action = self._reading.sample(self._actor_head(features), own_seed)
            deter = model.advance(state, action)
            following = rssm.State(deter, rssm.sample(model.prior(deter), noise))
            return following, (following.features(), action)

        features, actions = rssm.unroll(step, start, (noise, action_seeds))
        features = tf.concat([start.features()[tf.newaxis], features], axis=0)
        features, actions = map(tf.stop_gradient, (features, actions))
        flat = tf.reshape(features, [-1, features.shape[-1]])

        def in_time(x: tf.Tensor) -> tf.Tensor:
            return tf.stop_gradient(tf.reshape(x, [length + 1, number]))

        going = in_time(tf.sigmoid(self._model.continue_logits(flat)))
        values = in_time(BINS.value(self._critic(flat)))
        rewards = in_time(BINS.value(self._model.reward_logits(flat)))
        returns = losses.lambda_returns(
            rewards[1:], going[1:], values[1:], self._lambda
        )
        weights = tf.math.cumprod(going, axis=0)[:-1]
        return Imagined(features[:-1], actions, returns, values[:-1], weights)

    def _of_imagination(self, imagined: Imagined, training: bool) -> dict[str, Any]:
        """Returns the losses of the actor and of the critic, `[N]`, by name."""
        width = imagined.features.shape[-1]
        flat = tf.reshape(imagined.features, [-1, width])
        vectors = tf.reshape(imagined.actions, [-1, imagined.actions.shape[-1]])
        returns, values, weights = (
            tf.reshape(x, [-1])
            for x in (imagined.returns, imagined.values, imagined.weights)
        )
        scale = self._scale_of_returns(imagined.returns, training)
        outputs = self._actor_head(flat)
        actor_loss = losses.imagined_actor_loss(
            self._reading.log_prob(outputs, vectors),
            (returns - values) / scale,
            self._reading.entropy(outputs),
            self._entropy_regularization,
        )

        def over_time(each: tf.Tensor) -> tf.Tensor:
            shape = [self._imagination_length, -1]
            return tf.reduce_mean(tf.reshape(weights * each, shape), axis=0)

        return {
            "actor_loss": over_time(actor_loss),
            "critic_loss": over_time(self._critic_losses(flat, returns)),
        }

    def _of_replay(
        self, data: Sequences, features: tf.Tensor, imagined_returns: tf.Tensor
    ) -> tf.Tensor:
        """Returns the critic's losses on replayed states, `[N]`.

        Their gradients train the model, too.
        """
        batch_size, length = tf.unstack(tf.shape(data.reward))
        reward, ends, stops, bootstrap = map(
            common.transpose_batch_time,
            (
                data.reward,
                data.ends,
                data.is_last | _next(data.is_first | data.is_cut),
                tf.reshape(imagined_returns, [batch_size, length]),
            ),
        )
        returns = losses.lambda_returns(
            reward[1:],
            self._gamma * (1.0 - ends[1:]),
            bootstrap[1:],
            self._lambda,
            tf.cast(~stops[1:], tf.float32),
        )
        # Nothing follows the last step.
        returns = common.transpose_batch_time(tf.pad(returns, [[0, 1], [0, 0]]))
        each = self._critic_losses(features, tf.reshape(returns, [-1]))
        counts = ~common.transpose_batch_time(stops) & _has_next(data.reward)
        return masking.masked(each, tf.reshape(counts, [-1]))

    def _critic_losses(self, features: tf.Tensor, returns: tf.Tensor) -> tf.Tensor:
        """Returns the losses of the critic towards returns and its average, `[N]`."""
        logits = self._critic(features)
        average = BINS.value(self._average_critic(tf.stop_gradient(features)))
        return BINS(returns, logits) + BINS(average, logits)

    def _scale_of_returns(self, returns: tf.Tensor, training: bool) -> tf.Tensor:
        """Returns the running range of returns `[H, N]`, at least 1."""
        now = losses.percentile_range(replicas.gathered(tf.transpose(returns)))
        before = self._range.read_value()
        moved = before + self._range_rate * (now - before)
        if training:
            self._range.assign(moved)
        return tf.maximum(1.0, moved)


def _flat(x: tf.Tensor) -> tf.Tensor:
    """Returns `[B, T, ...]` as `[B T, ...]`."""
    return tf.reshape(x, [-1, *x.shape[2:]])


def _like(x: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """Returns `[B]` as `[B, 1, ...]`, with the rank of another tensor."""
    return tf.reshape(x, [-1, *[1] * (other.shape.rank - 1)])


def _next(x: tf.Tensor) -> tf.Tensor:
    """Returns whether the next step of sequences `[B, T]` is so; False at the end."""
    return tf.pad(x[:, 1:], [[0, 0], [0, 1]])


def _has_next(like: tf.Tensor) -> tf.Tensor:
    """Returns whether a step follows in sequences, bool `[B, T]`."""
    return _next(tf.ones_like(like, tf.bool))
