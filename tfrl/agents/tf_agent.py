"""The base class of all agents."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from tfrl.agents import checks, data_converter, measures, normalization, updates
from tfrl.agents.checks import check_finite, check_finite_gradients
from tfrl.compilation import context, conversion, convolutions
from tfrl.policies import partial_observation_policy, tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.typing import types
from tfrl.utils import mixins, variables
from tfrl.utils.optimization import optimizers
from tfrl.utils.random_numbers import seeds
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import TensorNormalizer
from tfrl.utils.variables import VariableList

conversion.spare_modules()


class LossInfo(NamedTuple):
    """A scalar loss, and details in `extra` that depend on the algorithm."""

    loss: tf.Tensor
    extra: Any


class TFAgent(mixins.RefusesOverrides, tf.Module, mixins.Untracked, abc.ABC):
    """Base class of all agents.

    A subclass builds its networks and policies, passes the policies to this
    constructor, and then lists the parts of its update in `_parts`, each a loss with
    its optimizer. Or it implements `_loss`, and calls `_set_only_part` with the
    networks that this loss trains and their optimizer. `_train` updates the parts in
    turn, counts the train step, and moves the target networks. The public methods
    `train`, `loss` and `initialize` call `_train`, `_loss` and `_initialize`, with
    keyword arguments. A subclass overrides `_variables` if its state has further
    variables.

    A loss of a part takes a `Batch`, whose `data` is the experience as `_prepare`
    returned it, and returns a scalar and a dictionary of details. `_info` is the named
    tuple of `LossInfo.extra`. Its fields are `<label>_loss`, for the losses of the
    parts, and names of details. If the agent lacks the part of a field, the field is 0.

    `variables` lists all variables that `train` and `update_normalizers` change. They
    change nothing else, so a checkpoint of the agent is complete.
    """

    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "_apply_loss": "take the gradients in _train and give them to self._apply",
    }

    # Whether a step of experience is a whole round, independent of all others.
    learns_from_rounds = False
    # The named tuple of `LossInfo.extra`, for an agent with several parts.
    _info: Any = None
    # The parts of an update, in order.
    _parts: Sequence[updates.Part] = ()
    # Modules with variables that belong to the agent's state, but that no part trains.
    _untrained: Sequence[tf.Module] = ()
    # Turns experience into the `data` of a `Batch`; None leaves it as it is.
    _as_data: Any = None
    # Networks and their targets, and the function that updates the targets after each
    # update.
    _target_pairs: Sequence[tuple[Any, Any]] = ()
    _update_target: Callable[[], Any] | None = None
    # The seed of random numbers in the losses, if there are any.
    _seed: tf.Variable | None = None

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        policy: tf_policy.TFPolicy,
        collect_policy: tf_policy.TFPolicy,
        train_sequence_length: int | None,
        num_outer_dims: int = 2,
        training_data_spec: types.NestedTensorSpec | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        enable_summaries: bool = True,
        train_step_counter: tf.Variable | None = None,
        *,
        name: str | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
    ) -> None:
        """Stores the specs and the policies.

        Args:
          time_step_spec: A `TimeStep` of specs, such as the environment's
            `time_step_spec()`.
          action_spec: A nest of bounded specs.
          policy: The policy to deploy and evaluate.
          collect_policy: The policy that explores.
          train_sequence_length: The `T` of the experience that `train` expects; None
            allows any. Samples of a replay buffer need this number as `num_steps`.
          num_outer_dims: 2 for experience `[B, T, ...]`, 1 for `[B, ...]`.
          training_data_spec: The nest of specs that `train` expects; the specs of the
            collected data if None.
          debug_summaries: Whether to write histograms of the parts of the loss.
          summarize_grads_and_vars: Whether to write histograms of gradients and
            variables.
          enable_summaries: False silences all summaries.
          train_step_counter: An integer variable that `train` increments; if None, the
            agent makes an int64 variable.
          name: The module's name.
          observation_normalizer: The normalizer in which the subclass has wrapped the
            networks; see `agents.normalization.normalized_networks`.
          reward_normalizer: A normalizer of the rewards for the losses.

        Raises:
          TypeError: `time_step_spec` is not a `TimeStep`, or `collect_policy` is no
            policy, or `reward_normalizer` is not a `RewardNormalizer`.
          ValueError: `num_outer_dims` is neither 1 nor 2.
        """
        super().__init__(name=name)
        checks.check_time_step_spec(time_step_spec)
        if num_outer_dims not in (1, 2):
            raise ValueError(
                f"num_outer_dims: expected 1 (experience [B, ...]) or 2 ([B, T, ...]), "
                f"got {num_outer_dims}."
            )
        checks.check_collect_policy(collect_policy)
        self._set_untracked("_time_step_spec", tensor_spec.from_spec(time_step_spec))
        self._set_untracked("_action_spec", tensor_spec.from_spec(action_spec))
        self._policy = policy
        self._collect_policy = collect_policy
        self._train_sequence_length = train_sequence_length
        self._num_outer_dims = num_outer_dims
        self._jit_compile_losses = False
        self._collect_data_context = data_converter.DataContext(
            self._time_step_spec, self._action_spec, collect_policy.info_spec
        )
        self._set_untracked(
            "_training_data_spec",
            None
            if training_data_spec is None
            else tensor_spec.from_spec(training_data_spec),
        )
        self._data_context = self._make_data_context()
        self._normalizers = normalization.Normalizers(
            observation_normalizer,
            reward_normalizer,
            collect_policy.observation_and_action_constraint_splitter,
        )
        self._train_step_counter = checks.as_train_step_counter(train_step_counter)
        self._summaries = measures.Summaries(
            self._train_step_counter,
            enabled=enable_summaries,
            debug=debug_summaries,
            weights=summarize_grads_and_vars,
        )

    def _make_data_context(self) -> data_converter.DataContext:
        """Returns the specs of the training data.

        Fields without an entry in `training_data_spec` have the specs of the collected
        data.
        """
        spec = self._training_data_spec
        if spec is None:
            return self._collect_data_context
        collected = self._collect_data_context.trajectory_spec
        field = {
            name: getattr(spec, name, getattr(collected, name))
            for name in collected._fields
        }
        return data_converter.DataContext(
            ts.TimeStep(
                step_type=field["step_type"],
                reward=field["reward"],
                discount=field["discount"],
                observation=field["observation"],
            ),
            field["action"],
            field["policy_info"],
        )

    def initialize(self) -> None:
        """Prepares the agent for its first update; e.g., copies the target network."""
        self._initialize()

    def preprocess_sequence(
        self, experience: types.NestedTensor, **kwargs: Any
    ) -> types.NestedTensor:
        """Turns collected sequences into training data; the identity by default.

        Args:
          experience: Sequences of frames of `collect_data_spec`.
          **kwargs: Additional arguments for the algorithm's `_preprocess_sequence`.
        """
        return self._preprocess_sequence(experience, **kwargs)

    def train(
        self,
        experience: types.NestedTensor,
        weights: tf.Tensor | None = None,
        **kwargs: Any,
    ) -> LossInfo:
        """Does one update.

        Args:
          experience: A `Trajectory` `[B, T, ...]` with `T = train_sequence_length`, or
            a `Transition`, with the structure of `training_data_spec`. Additional
            entries of dictionaries are ignored.
          weights: The weight of each example in the loss, a scalar or `[B]`.
          **kwargs: Additional arguments for the algorithm's `_train`.

        Returns:
          The loss before the update.

        Raises:
          ValueError: The algorithm cannot use experience of this shape.
          TypeError: The algorithm cannot use experience of this type.
        """
        experience = self._normalizers.normalize_rewards(experience)
        return self._checked(
            self._train(experience=experience, weights=weights, **kwargs)
        )

    def loss(
        self,
        experience: types.NestedTensor,
        weights: tf.Tensor | None = None,
        training: bool = False,
        **kwargs: Any,
    ) -> LossInfo:
        """Returns the loss that `train` minimises, without an update.

        Args:
          experience: See `train`.
          weights: See `train`.
          training: Whether the networks are applied as in training, which changes
            statistics of layers, such as batch normalization's, and the states of
            dropout. Otherwise nothing changes.
          **kwargs: Additional arguments for the algorithm's `_loss`.
        """
        experience = self._normalizers.normalize_rewards(experience)
        return self._checked(
            self._loss(
                experience=experience, weights=weights, training=training, **kwargs
            )
        )

    @property
    def refreshes_experience(self) -> bool:
        """Whether trainers write `refreshed` frames to the buffer after an update."""
        return False

    def refreshed(self, experience: Any, loss_info: LossInfo) -> Any:
        """Returns the frames of an update, with newer values that it has found.

        Args:
          experience: The frames that were given to `train`.
          loss_info: The result of `train`.
        """
        del loss_info
        return experience

    def update_normalizers(self, frames: trajectory.Trajectory) -> None:
        """Adds collected frames to the statistics of the agent's normalizers.

        Training loops call it once with each frame that they collect; a `Learner` and a
        `DatasetLoop` call it with the frames on which they train. In your own loop,
        give it to the driver: `observers=[buffer.add_batch, agent.update_normalizers]`.
        Nothing else changes the statistics.

        Args:
          frames: Frames `[B, ...]`, or sequences `[B, T, ...]` of them in order of
            time, of `collect_data_spec`.
        """
        self._normalizers.update(frames)

    def diagnose(
        self, experience: types.NestedTensor | None = None
    ) -> dict[str, tf.Tensor]:
        """Returns numbers for a log, such as the current learning rate, by name.

        A `Run` logs them. This method changes nothing, not even the state of a random
        generator. The networks are applied as in evaluation, and means leave out masked
        examples.

        Args:
          experience: See `train`; None leaves out the numbers that need a batch.

        Returns:
          Scalars: `learning_rate` and `gradient_norm` (before clipping); if there are
          several parts, also `<label>_learning_rate` and `<label>_gradient_norm` of
          each part but the critics; `dormant_units`, the share of hidden units
          that hardly ever differ from 0, and `dormant_layer`, the largest such share in
          one layer; the numbers of `measures.of_experience`; and numbers of the
          algorithm.
        """
        numbers = measures.learning_rates(self._parts) | self._log_values()
        if experience is None or not self._parts:
            return numbers
        experience = self._normalizers.normalize_rewards(experience)
        numbers |= measures.of_experience(
            experience, self.action_spec, self._reward_factor()
        )
        with tf.summary.record_if(False):
            batch = self._batch(experience, None, False)
            of_parts = measures.of_parts(self._in_turn(batch))
            return numbers | of_parts | self._measure(batch)

    def weights_by_name(self) -> dict[str, list[tf.Variable]]:
        """Returns the trained weights, and the targets' weights if there are any.

        A log shows how far they move. The names are `weights`, `<label>_weights` as in
        `diagnose`, and `target_weights`.
        """
        targets = [target for _, target in self._target_pairs]
        return measures.weights_by_name(self._parts, targets)

    def predicted_returns(self, time_step: ts.TimeStep) -> tf.Tensor | None:
        """Returns the discounted returns that the agent's values predict, `[B]`.

        They are in the units of the environment's rewards: the greatest action value,
        the value of the greedy action, or the value of the observation, as the agent
        learns them. None for an agent without values, or with memory.

        Args:
          time_step: Time steps `[B, ...]`.
        """
        if self.collect_policy.is_recurrent:
            return None
        values = self._state_values(time_step)
        if values is None:
            return None
        factor = tf.cast(self._reward_factor(), tf.float32)
        if self.reward_normalizer is not None:
            factor *= self.reward_normalizer.scale()
        return tf.cast(values, tf.float32) / factor

    def discount_factor(self) -> Any:
        """Returns gamma, the discount of a step in the values; 1 without values."""
        return getattr(self, "_gamma", 1.0)

    def _state_values(self, time_step: ts.TimeStep) -> tf.Tensor | None:
        """Returns the values of time steps in the losses' units, `[B]`, or None."""
        del time_step
        return None

    def _reward_factor(self) -> Any:
        """Returns the factor of the rewards in the losses."""
        return getattr(self, "_reward_scale_factor", 1.0)

    def _checked(self, loss_info: Any) -> LossInfo:
        if not isinstance(loss_info, LossInfo):
            raise TypeError(
                f"{type(self).__name__}: expected its _train and _loss to return a "
                f"LossInfo(loss, extra), got {type(loss_info).__name__}."
            )
        return loss_info

    @property
    def variables(self) -> VariableList:
        """All variables that training changes, such as weights and optimizer slots.

        `agent.variables()` returns the same list as `agent.variables`.
        """
        held = [*self._variables(), self._train_step_counter]
        known = {id(v) for v in variables.as_tf_variables(held)}
        statistics = variables.tracked_variables(self._normalizers)
        return VariableList([*held, *(v for v in statistics if id(v) not in known)])

    def leave_out_of_policy(self, *names: str) -> None:
        """Lets `policy` act without parts of observations, which are 0 for it.

        It is then saved, exported and served without them. The collect policy keeps
        them, since critics learn from what it sees.

        Args:
          *names: The keys of the parts, which its network must not use.
        """
        self._policy = partial_observation_policy.PartialObservationPolicy(
            self._policy, names
        )

    def post_process_policy(self) -> tf_policy.TFPolicy:
        """Returns the policy to deploy after training; `policy` by default."""
        return self.policy

    @property
    def time_step_spec(self) -> ts.TimeStep:
        """The `TimeStep` of specs of the policies' inputs."""
        return self._time_step_spec

    @property
    def action_spec(self) -> types.NestedTensorSpec:
        """The nest of bounded specs of the policies' actions."""
        return self._action_spec

    @property
    def data_context(self) -> data_converter.DataContext:
        """The specs of the training data."""
        return self._data_context

    @property
    def collect_data_context(self) -> data_converter.DataContext:
        """The specs of the collected data."""
        return self._collect_data_context

    @property
    def policy(self) -> tf_policy.TFPolicy:
        """The policy to evaluate and deploy."""
        return self._policy

    @property
    def collect_policy(self) -> tf_policy.TFPolicy:
        """The policy that collects experience."""
        return self._collect_policy

    @property
    def collect_data_spec(self) -> types.Trajectory:
        """The `Trajectory` of specs of the data that `collect_policy` collects."""
        return self._collect_data_context.trajectory_spec

    @property
    def training_data_spec(self) -> types.Trajectory:
        """The nest of specs of `train`'s experience, without outer dimensions."""
        if self._training_data_spec is not None:
            return self._training_data_spec
        return self.collect_data_spec

    @property
    def train_sequence_length(self) -> int | None:
        """The `T` of the experience that `train` expects; None allows any."""
        return self._train_sequence_length

    @property
    def observation_normalizer(self) -> TensorNormalizer | None:
        """The normalizer of the networks' observations, or None."""
        return self._normalizers.observation_normalizer

    @property
    def reward_normalizer(self) -> RewardNormalizer | None:
        """The normalizer of the losses' rewards, or None."""
        return self._normalizers.reward_normalizer

    @property
    def bootstraps_truncations(self) -> bool:
        """Whether `train` needs the last observations of truncated episodes.

        The last observation is in the boundary frame that follows an episode. If True,
        an `EpisodicLoop` also appends this frame to the last episode of each row. False
        unless a subclass says otherwise.
        """
        return False

    @property
    def summaries_enabled(self) -> bool:
        """Whether any summary is written."""
        return self._summaries.enabled

    @property
    def debug_summaries(self) -> bool:
        """Whether histograms of the loss's parts are written."""
        return self._summaries.enabled and self._summaries.debug

    @property
    def summarize_grads_and_vars(self) -> bool:
        """Whether histograms of gradients and variables are written."""
        return self._summaries.enabled and self._summaries.weights

    @property
    def train_step_counter(self) -> tf.Variable:
        """The number of updates so far."""
        return self._train_step_counter

    @property
    def jit_compile_losses(self) -> bool:
        """Whether XLA compiles each loss and its gradients, without the optimizer.

        Set it before `train` is traced, and call `train` in a `tf.function`, which
        keeps the compiled code. The parts of a compiled loss are not written as
        summaries, since XLA has none.
        """
        return self._jit_compile_losses

    @jit_compile_losses.setter
    def jit_compile_losses(self, jit_compile_losses: bool) -> None:
        self._jit_compile_losses = jit_compile_losses

    def _apply(
        self,
        loss: tf.Tensor,
        gradients: list[Any],
        trained: list[Any],
        optimizer: optimizers.OptimizerAdapter,
        untrained: Sequence[Any] = (),
    ) -> tf.Tensor:
        """Clips one optimizer's gradients and applies them, if they are finite.

        In the replicas of a `tf.distribute` strategy, the means of the loss and of the
        gradients are taken first, so that every replica does the same, and all replicas
        stop if a number of one replica is not finite. An agent with several optimizers
        calls this once for each, and then `_count`. Under XLA, which has no assertions,
        the gradients are applied in any case.

        Args:
          loss: The scalar that was minimised.
          gradients: A gradient, or None, for each of `trained`.
          trained: The variables to update.
          optimizer: The optimizer of `trained`.
          untrained: Further variables to summarise, such as statistics of layers.

        Returns:
          The loss, of all replicas, after the checks. Other changes of the update must
          depend on it.

        Raises:
          tf.errors.InvalidArgumentError: The loss or the sum of the gradients' squares
            is not finite; nothing was changed.
        """
        loss, gradients = optimizer.reduced(loss, gradients)
        self._summaries.write_gradients(gradients, trained, untrained)
        if context.in_xla_graph():
            optimizer.apply(gradients)
            return loss
        name = type(self).__name__
        with tf.control_dependencies([check_finite(loss, name)]):
            size = check_finite_gradients(gradients, name)
        with tf.control_dependencies([size]):
            optimizer.apply(gradients)
            return tf.identity(loss)

    def _count(self, *checked: tf.Tensor) -> None:
        """Adds one to the train step counter.

        Args:
          *checked: The losses that `_apply` returned. The counter does not change if a
            check failed.
        """
        with tf.control_dependencies(checked):
            self.train_step_counter.assign_add(1)

    def _initialize(self) -> None:
        """Prepares the first update: copies the weights of networks to targets."""
        updates.copy_weights(self._target_pairs)

    def _preprocess_sequence(self, experience: Any) -> Any:
        """Turns collected sequences into training data; the identity by default."""
        return experience

    # The update.

    # With `*args` and `**kwargs`, type checkers accept overrides with further
    # arguments.
    def _train(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> LossInfo:
        """Updates the parts in turn, counts, and moves the target networks."""
        batch = self._batch(experience, weights, True, *args, **kwargs)
        return self._update_parts(batch)

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> LossInfo:
        """Returns the sum of the parts' losses, all with the current weights."""
        batch = self._batch(experience, weights, training, *args, **kwargs)
        return self._loss_of_parts(batch)

    def _set_only_part(
        self,
        trained: Sequence[Any],
        optimizer: types.Optimizer | None,
        clip: optimizers.Clip | None = None,
    ) -> None:
        """Sets the only part of an agent whose whole loss is `_loss`.

        Args:
          trained: The networks to train.
          optimizer: Their optimizer; None for an agent that never trains.
          clip: Clips the gradients, such as `optimizers.all_to_norm(0.5)`, or None.
        """
        part = updates.Part("whole", self._whole_loss, trained, optimizer, clip=clip)
        self._optimizer = part.optimizer
        self._parts = [part]

    def _whole_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the loss of an agent with `_set_only_part`."""
        info = self._loss(
            experience=batch.data, weights=batch.weights, training=batch.training
        )
        loss, extra = checks.pair(f"{type(self).__name__}._loss", info, "a LossInfo")
        return loss, {"extra": extra}

    def _prepare(self, experience: Any, weights: tf.Tensor | None = None) -> Any:
        """Prepares the experience for the losses, with `_as_data` if it is not None."""
        del weights
        return experience if self._as_data is None else self._as_data(experience)

    def _batch(
        self,
        experience: Any,
        weights: tf.Tensor | None,
        training: bool,
        seed: int | tf.Tensor | None = None,
        **kwargs: Any,
    ) -> updates.Batch:
        """Returns the batch for an update or for the loss.

        Args:
          experience: See `train`.
          weights: See `train`.
          training: See `loss`.
          seed: The seed of random numbers; None takes the next update's, which depends
            on the agent's seed and the train step counter alone.
          **kwargs: Additional arguments for the algorithm's `_prepare`.
        """
        if seed is not None and self._seed is None:
            raise TypeError(
                f"seed: got {seed} for a {type(self).__name__}, whose losses draw no "
                "random numbers, expected None; leave it out."
            )
        data = self._prepare(experience, weights, **kwargs)
        return self._batch_of(data, weights, training, seed)

    def _batch_of(
        self,
        data: Any,
        weights: tf.Tensor | None,
        training: bool,
        seed: int | tf.Tensor | None = None,
    ) -> updates.Batch:
        """Returns the batch of prepared data."""
        if seed is None and self._seed is not None:
            counter = tf.cast(self.train_step_counter, tf.int64)
            seed = tf.stack([self._seed, counter])
        own = None if seed is None else seeds.as_seed(seed)
        return updates.Batch(data, weights, training, own)

    def _in_turn(
        self, batch: updates.Batch
    ) -> list[tuple[updates.Part, updates.Batch]]:
        """Returns the parts, each with its own seed in its batch."""
        if not self._parts:
            raise NotImplementedError(
                f"{type(self).__name__}: got no parts of an update, expected some in "
                "self._parts; list them in the constructor, or write _train and _loss."
            )
        if batch.seed is None:
            return [(part, batch) for part in self._parts]
        each = seeds.split_seed(batch.seed, len(self._parts))
        return [
            (part, batch._replace(seed=seed))
            for part, seed in zip(self._parts, each, strict=True)
        ]

    def _update_parts(self, batch: updates.Batch) -> LossInfo:
        """Does one update; returns each part's loss from before its own update."""
        part_losses, details = {}, dict(batch.details)
        for part, own in self._in_turn(batch):
            own = own._replace(details=dict(details))
            if part.period is None:
                loss, new = self._gradient_step(part, own)
            else:
                step = functools.partial(self._gradient_step, part, own)
                loss, new = part.at_its_time(step, self.train_step_counter)
            part_losses[part.label] = loss
            details |= new
        checked = list(part_losses.values())
        self._count(*checked)
        if self._update_target is not None:
            with tf.control_dependencies(checked):
                self._update_target()
        return self._loss_info(part_losses, details)

    def _loss_of_parts(self, batch: updates.Batch) -> LossInfo:
        """Returns all losses with the current weights; see `loss`."""
        part_losses, details = {}, dict(batch.details)
        for part, own in self._in_turn(batch):
            loss, new = part.compute(own._replace(details=dict(details)))
            part_losses[part.label] = part.weight * loss
            details |= new
        return self._loss_info(part_losses, details)

    def _gradient_step(
        self, part: updates.Part, batch: updates.Batch
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        """Takes one gradient step of a part.

        Returns:
          The weighted loss before the step, and its details. The loss depends on the
          checks that it and its gradients are finite.
        """
        trained = part.trained_variables()

        def differentiate() -> tuple[tf.Tensor, dict[str, Any], list[Any]]:
            with tf.GradientTape() as tape:
                loss, details = part.compute(batch)
                loss = part.weight * loss
            with convolutions.fast_gradients(trained):
                return loss, details, tape.gradient(loss, trained)

        if self._jit_compile_losses:
            differentiate = _compiled(differentiate)
        loss, details, gradients = differentiate()
        checked = self._apply(
            loss, gradients, trained, part.optimizer, part.untrained_variables()
        )
        if part.after is not None:
            with tf.control_dependencies([checked]):
                part.after()
        return checked, details

    def _loss_info(
        self, part_losses: dict[str, tf.Tensor], details: dict[str, Any]
    ) -> LossInfo:
        """Adds up the losses, and writes the summaries."""
        if "extra" in details:  # The loss of the only part, which is the whole loss.
            (loss,) = part_losses.values()
            return LossInfo(loss, details["extra"])
        fields = self._info._fields
        found: dict[str, Any] = {
            name: tf.constant(0.0) for name in fields if name.endswith("_loss")
        }
        found |= {f"{label}_loss": loss for label, loss in part_losses.items()}
        found |= details
        info = self._info(*(found[name] for name in fields))
        total = updates.total_loss(self._parts, part_losses, fields)
        self._summaries.write_losses(total, {**info._asdict(), **self._log_values()})
        return LossInfo(total, info)

    def _log_values(self) -> dict[str, tf.Tensor]:
        """Returns scalars for the log that need no batch, such as a temperature."""
        return {}

    def _measure(self, batch: updates.Batch) -> dict[str, tf.Tensor]:
        """Returns scalars of a batch for the log, with the update's seed."""
        del batch
        return {}

    def _variables(self) -> list[tf.Variable]:
        """Returns all variables that `_train` changes, but not the train step counter.

        By default, these are the variables of the parts, the targets and the seed. An
        agent without parts has the variables that `tf.train.Checkpoint` finds in its
        attributes, except for the states of random generators.
        """
        if not self._parts:
            found = variables.tracked_variables(self)
            return [v for v in found if v is not self._train_step_counter]
        return variables.as_tf_variables(
            [
                *(v for part in self._parts for v in part.held()),
                *(v for module in self._untrained for v in module.variables),
                *(v for _, target in self._target_pairs for v in target.variables),
                *getattr(self._update_target, "variables", tuple)(),
                *([] if self._seed is None else [self._seed]),
            ]
        )


def _compiled(function: Callable[[], Any]) -> Any:
    """Returns a function that is compiled by XLA, without its summaries."""

    def without_summaries() -> Any:
        with tf.summary.record_if(False):
            return function()

    return tf.function(without_summaries, autograph=False, jit_compile=True)
