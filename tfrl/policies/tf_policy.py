"""`TFPolicy`, the base class of policies on tensors.

The public methods call the protected methods of a subclass, and check structures,
dtypes and shapes in Python. In a `tf.function` the checks run only while it is traced,
so they add nothing to the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, final

import tensorflow as tf

from tfrl.compilation import conversion
from tfrl.distributions import sampling
from tfrl.policies import utils
from tfrl.policies.acting import prediction, traced_action, validation
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common, mixins, nest_utils, variables
from tfrl.utils.random_numbers import seeds

conversion.spare_modules()


class TFPolicy(mixins.RefusesOverrides, tf.Module, mixins.Untracked):
    """Maps time steps to actions, or to distributions over actions.

    A subclass implements `_distribution`, or `_action` if it has no distribution. The
    `seed` of `_action` is an integer tensor of shape `[2]`. A subclass may override
    `_variables` if some of its variables do not affect its actions, `_greedy_action` if
    there is a faster way to find the mode, and `_is_pure_tensorflow` so that eager
    calls are traced.
    """

    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "action": "write _action, which action() and wrappers call",
        "distribution": "write _distribution, which distribution() and wrappers call",
        "get_initial_state": "write _get_initial_state",
        "variables": "write _variables",
        "_maybe_reset_state": "pass automatic_state_reset=False and reset in _action",
        "_setup_specs": "give the constructor other specs",
    }
    # Methods that must agree with `_distribution`. A subclass that overrides
    # `_distribution` but not these gets the methods of `TFPolicy`, which call it.
    _shortcuts: ClassVar[tuple[str, ...]] = ("_greedy_action",)

    # Whether `_action` uses its seed. With False the policy has no random stream.
    _needs_seed: bool = True
    # Whether `_greedy_action` can leave the bounds of the action spec.
    _greedy_action_needs_clip: bool = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for shortcut in cls._shortcuts:
            if mixins.overrides_later(cls, "_distribution", shortcut):
                setattr(cls, shortcut, getattr(TFPolicy, shortcut))

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        policy_state_spec: types.NestedTensorSpec = (),
        info_spec: types.NestedTensorSpec = (),
        clip: bool = True,
        emit_log_probability: bool = False,
        automatic_state_reset: bool = True,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        validate_args: bool = True,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of (bounded) specs.
          policy_state_spec: A nest of specs, `()` for a stateless policy.
          info_spec: A nest of specs of `PolicyStep.info`.
          clip: Whether `action` clips to the bounds of `action_spec`.
          emit_log_probability: Whether `PolicyStep.info` holds the action's
            log-probability; `info_spec` must be `()`, a dict, or a namedtuple with the
            field `log_probability`.
          automatic_state_reset: Whether the state of a batch entry is replaced by the
            initial state where its time step is FIRST.
          observation_and_action_constraint_splitter: A function from an observation to
            the pair (input of the network, mask of valid actions `[B, num_actions]`).
          validate_args: Whether inputs and outputs are checked against the specs.
          name: The module's name.
          seed: Seed of the policy's own random stream, from which `action` draws if it
            is given no seed; None follows `tf.random.set_seed`.

        Raises:
          ValueError: `time_step_spec` is not a `TimeStep`.
        """
        super().__init__(name=name)
        validation.check_time_step_spec(time_step_spec)
        action_spec = tensor_spec.from_spec(action_spec)
        if emit_log_probability:
            info_spec = policy_step.set_log_probability(
                info_spec, utils.log_probability_spec(action_spec)
            )
        self._set_untracked("_time_step_spec", tensor_spec.from_spec(time_step_spec))
        self._set_untracked("_action_spec", action_spec)
        self._set_untracked(
            "_policy_state_spec", tensor_spec.from_spec(policy_state_spec)
        )
        self._set_untracked("_info_spec", tensor_spec.from_spec(info_spec))
        self._set_untracked(
            "_policy_step_spec",
            policy_step.PolicyStep(
                self._action_spec, self._policy_state_spec, self._info_spec
            ),
        )
        self._set_untracked(
            "_trajectory_spec",
            trajectory.from_transition(
                self._time_step_spec, self._policy_step_spec, self._time_step_spec
            ),
        )
        self._clip = clip
        self._emit_log_probability = emit_log_probability
        self._automatic_state_reset = automatic_state_reset
        self._observation_and_action_constraint_splitter = (
            observation_and_action_constraint_splitter
        )
        self._validate_args = validate_args
        self._set_untracked("_traced_action", traced_action.TracedAction())
        self._set_untracked("_predictor", None)
        if self._needs_seed:
            # The stream is made here, since a `tf.function` that calls `action` may
            # make no variable.
            with tf.init_scope():
                self._generator = seeds.make_generator(seed)

    @final
    def action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor = (),
        seed: int | tf.Tensor | None = None,
    ) -> policy_step.PolicyStep:
        """Chooses an action for each entry of the batch.

        Args:
          time_step: Tensors (or arrays) `[B, ...]` that match `time_step_spec`; entries
            of a dict that the spec does not name are dropped.
          policy_state: The state that the previous call returned, `[B, ...]`; `()`
            stands for the initial state. A policy without state drops it.
          seed: An integer, or an integer tensor of shape `[2]`, that decides all
            randomness of this call; None draws a seed from the policy's own stream.

        Returns:
          `PolicyStep(action, state, info)`, each `[B, ...]`.

        Raises:
          TypeError: `time_step` is an array alone, or a dtype differs from its spec.
          ValueError: A structure or shape differs from its spec.
        """
        if tf.executing_eagerly():
            seed = None if seed is None else seeds.as_seed(seed)
            return self._traced_action.call(self, time_step, policy_state, seed)
        return self._act(time_step, policy_state, seed)

    def _act(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor, seed: Any
    ) -> policy_step.PolicyStep:
        """Chooses and checks actions, eagerly or in a graph; see `action`."""
        time_step, policy_state = self._prepare(time_step, policy_state)
        step = self._action(
            time_step=time_step,
            policy_state=policy_state,
            seed=self._stateless_seed(seed),
        )
        if self._validate_args:
            validation.check_action(step.action, self._action_spec, self.name)
        if self._clip:
            action = tf.nest.map_structure(_clip, step.action, self._action_spec)
            step = step._replace(action=action)
        if self._validate_args:
            validation.check_policy_step(step, self._policy_step_spec, self.name)
        return step

    @final
    def predict(
        self,
        observation: types.NestedArray,
        state: types.NestedArray | None = None,
        episode_start: Any = None,
    ) -> tuple[types.NestedArray, types.NestedArray]:
        """Chooses actions for raw observations; takes and returns arrays.

        ```python
        observation, _ = env.reset()  # A Gymnasium environment.
        action, state = policy.predict(observation)
        ```

        Args:
          observation: A nest of arrays that match the observation spec, one observation
            or a batch `[B, ...]`; entries of a dict that the spec does not name are
            dropped.
          state: The state that the previous call returned; None at the start.
          episode_start: Whether an episode begins, a bool or bools `[B]`, for policies
            with a state. None means that all episodes begin if `state` is None, and
            that none begins otherwise.

        Returns:
          The action, and the next state (`()` if stateless): nests of arrays, with a
          batch dimension if the observations have one.

        Raises:
          TypeError: A value cannot be cast to the dtype of its spec.
          ValueError: A structure or shape differs from its spec, or a number of the
            observation is not finite.
        """
        if self._predictor is None:
            made = prediction.of_tensors(self._time_step_spec)
            self._set_untracked("_predictor", made)
        return self._predictor(self, observation, state, episode_start)

    @final
    def distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor = ()
    ) -> policy_step.PolicyStep:
        """Returns the distribution over actions for each entry of the batch.

        Takes the arguments of `action`, and raises the same errors.

        Returns:
          `PolicyStep` whose `action` is a nest of TFP distributions with batch shape
          `[B]`. With `emit_log_probability` the log-probability in `info` is 0, since
          no action has been drawn.
        """
        time_step, policy_state = self._prepare(time_step, policy_state)
        step = self._distribution(time_step=time_step, policy_state=policy_state)
        if self._emit_log_probability:
            zeros = tf.nest.map_structure(
                lambda _: tf.constant(0.0),
                policy_step.get_log_probability(self._info_spec),
            )
            info = policy_step.set_log_probability(step.info, zeros)
            step = step._replace(info=info)
        if self._validate_args:
            validation.check_policy_step(step, self._policy_step_spec, self.name)
        return step

    @final
    def get_initial_state(
        self, batch_size: int | tf.Tensor | None
    ) -> types.NestedTensor:
        """Returns the initial state, `[batch_size, ...]`; `()` if stateless.

        A `batch_size` of None leaves out the batch dimension.
        """
        return self._get_initial_state(batch_size)

    def prepare(self, batch_size: int | None) -> None:
        """Makes the variables that actions for a batch of this size need.

        Training loops call it, so that checkpoints restored before the first action
        find all variables. Most policies have all variables from the start; a subclass
        that makes variables with its first action overrides this method.

        Args:
          batch_size: The number of time steps in a batch; None for single time steps.
        """

    @final
    def variables(self) -> Sequence[Any]:
        """Returns the variables that determine the actions, in the networks' order."""
        return list(self._variables())

    def update(
        self,
        policy: TFPolicy,
        tau: float = 1.0,
        tau_non_trainable: float | None = None,
        sort_variables_by_name: bool = False,
    ) -> None:
        """Moves this policy's variables towards `policy`'s variables.

        See `common.soft_variables_update` for the arguments and errors.
        """
        common.soft_variables_update(
            policy.variables(),
            self.variables(),
            tau=tau,
            tau_non_trainable=tau_non_trainable,
            sort_variables_by_name=sort_variables_by_name,
        )

    @property
    def time_step_spec(self) -> ts.TimeStep:
        """Specs of the time steps that `action` takes, without batch dimension."""
        return self._time_step_spec

    @property
    def action_spec(self) -> types.NestedTensorSpec:
        """Specs of `PolicyStep.action`."""
        return self._action_spec

    @property
    def policy_state_spec(self) -> types.NestedTensorSpec:
        """Specs of `PolicyStep.state`."""
        return self._policy_state_spec

    @property
    def is_recurrent(self) -> bool:
        """Whether networks keep a state from step to step."""
        return bool(tf.nest.flatten(self.network_state(self._policy_state_spec)))

    def network_state(self, policy_state: Any) -> Any:
        """Returns the part of a policy state, or of its specs, that networks keep.

        A policy that wraps another one may add to its state, such as noise that it
        keeps for several steps.

        Args:
          policy_state: A policy state, or `policy_state_spec`; `()` stays `()`.
        """
        return policy_state

    @property
    def info_spec(self) -> types.NestedTensorSpec:
        """Specs of `PolicyStep.info`."""
        return self._info_spec

    @property
    def policy_step_spec(self) -> policy_step.PolicyStep:
        """Specs of the result of `action`."""
        return self._policy_step_spec

    @property
    def trajectory_spec(self) -> trajectory.Trajectory:
        """Specs of the trajectories that this policy makes in an environment."""
        return self._trajectory_spec

    @property
    def collect_data_spec(self) -> trajectory.Trajectory:
        """The same as `trajectory_spec`, under the name that agents use."""
        return self._trajectory_spec

    @property
    def emit_log_probability(self) -> bool:
        """Whether `PolicyStep.info` holds log-probabilities."""
        return self._emit_log_probability

    @property
    def validate_args(self) -> bool:
        """Whether inputs and outputs are checked against the specs."""
        return self._validate_args

    @property
    def observation_and_action_constraint_splitter(self) -> types.Splitter | None:
        """Splits an observation into the network's part and the action mask."""
        return self._observation_and_action_constraint_splitter

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        """Samples from `_distribution`; override it if there is a faster way to act."""
        step = self._distribution(time_step=time_step, policy_state=policy_state)
        distributions = tf.nest.flatten(step.action)
        drawn = [
            sampling.sample(d, s)
            for d, s in zip(
                distributions,
                _one_seed_each(seed, len(distributions)),
                strict=True,
            )
        ]
        return self._with_actions(step, drawn, time_step)

    def _with_actions(
        self,
        step: policy_step.PolicyStep,
        drawn: Sequence[tf.Tensor],
        time_step: ts.TimeStep,
    ) -> policy_step.PolicyStep:
        """Returns a step of distributions with the actions that were drawn from them.

        Its info has the log-probabilities of the actions, with `emit_log_probability`.
        """
        info = step.info
        if self._emit_log_probability:
            outer_rank = tf.convert_to_tensor(time_step.step_type).shape.rank
            log_probability = [
                utils.action_log_probability(d, a, outer_rank)
                for d, a in zip(tf.nest.flatten(step.action), drawn, strict=True)
            ]
            info = policy_step.set_log_probability(
                info, tf.nest.pack_sequence_as(step.action, log_probability)
            )
        return step._replace(
            action=tf.nest.pack_sequence_as(step.action, drawn), info=info
        )

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        """Returns a `PolicyStep` whose action is a nest of TFP distributions."""
        raise NotImplementedError(
            f"{type(self).__name__}.distribution: this policy has no distribution over "
            "actions; call action() instead."
        )

    def _is_pure_tensorflow(self) -> bool:
        """Whether `_action` may be traced once and run as a graph from then on.

        Override it to return True if `_action` and `_distribution` run only TensorFlow
        operations, and keep everything that changes in variables. Repeated eager calls
        of the policy then run a traced graph, which is several times faster. False, the
        default, runs the Python code at each eager call. If subclasses of your class
        may add Python code, check the exact type: `return type(self) is MyPolicy`.
        """
        return False

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        """Returns the mode of `_distribution`; override it if there is a faster way.

        `GreedyPolicy` calls this method and sets the log-probability in `info` itself.
        """
        step = self._distribution(time_step=time_step, policy_state=policy_state)
        return step._replace(
            action=tf.nest.map_structure(utils.distribution_mode, step.action)
        )

    def _variables(self) -> Sequence[Any]:
        """Returns the variables that determine the actions.

        By default these are all variables that `tf.train.Checkpoint` finds in the
        policy's attributes, except the states of random generators.
        """
        return variables.tracked_variables(self)

    def _get_initial_state(
        self, batch_size: int | tf.Tensor | None
    ) -> types.NestedTensor:
        """Returns zeros that match `policy_state_spec`."""
        return tensor_spec.zero_spec_nest(
            self._policy_state_spec,
            outer_dims=None if batch_size is None else [batch_size],
        )

    def _prepare(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> tuple[ts.TimeStep, types.NestedTensor]:
        if self._validate_args:
            validation.check_is_time_step(time_step)
            time_step = validation.conform(
                time_step, self._time_step_spec, f"{self.name}: time_step"
            )
        if not tf.nest.flatten(self._policy_state_spec):
            # It needs no state, whatever a program gives it, as in TF-Agents.
            return time_step, self._policy_state_spec
        if isinstance(policy_state, tuple) and not policy_state:
            return time_step, self.get_initial_state(_batch_size(time_step))
        if self._validate_args:
            policy_state = validation.conform(
                policy_state, self._policy_state_spec, f"{self.name}: policy_state"
            )
        if self._automatic_state_reset:
            policy_state = self._reset_first(time_step, policy_state)
        return time_step, policy_state

    def _reset_first(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> types.NestedTensor:
        is_first = time_step.is_first()
        if is_first.shape.rank == 2:
            # For a sequence `[B, T]` the given state is the state before the first
            # step.
            is_first = is_first[:, 0]
        initial_state = self.get_initial_state(_batch_size(time_step))
        return nest_utils.where(is_first, initial_state, policy_state)

    def _stateless_seed(self, seed: int | tf.Tensor | None) -> tf.Tensor:
        if seed is not None:
            return seeds.as_seed(seed)
        if not self._needs_seed:
            return tf.zeros([2], tf.int64)
        return seeds.next_seed(self._generator)


def _one_seed_each(seed: tf.Tensor, num: int) -> list[tf.Tensor]:
    return [seed] if num == 1 else seeds.split_seed(seed, num)


def _clip(action: tf.Tensor, spec: tf.TensorSpec) -> tf.Tensor:
    if isinstance(spec, tensor_spec.BoundedTensorSpec):
        return common.clip_to_spec(action, spec)
    return action


def _batch_size(time_step: ts.TimeStep) -> int | tf.Tensor | None:
    """Returns the batch size, an integer if it is static; None without a batch."""
    step_type = tf.convert_to_tensor(time_step.step_type)
    if step_type.shape.rank == 0:
        return None
    static = step_type.shape.rank and step_type.shape[0]
    return static if static is not None else tf.shape(step_type)[0]
