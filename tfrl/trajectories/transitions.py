"""Makes the transitions from which agents learn, and marks invalid transitions.

Frame `t` holds the reward, discount and step type of the time step after its action.
The observation of that time step is in frame `t + 1`, but only if the two frames belong
together: `next_step_type[t] == step_type[t + 1]`. Otherwise the sequence is *cut*
between them (by a resumed run, or by a reset in mid-episode). A frame whose `step_type`
is LAST is a *boundary*: the environment's reset, which carries no learning signal.
Every loss masks the transitions whose `time_step` is LAST. So the converters also set
`time_step.step_type` to LAST in a transition that crosses a cut.

The frames do not contain the reward and discount of a transition's first time step, so
these are zeros. NaN would show more clearly that they are unknown, but it would make
`tf.debugging.enable_check_numerics()` fail in every graph, and masks that multiply
would not remove it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfrl.compilation import accelerators
from tfrl.losses import masking, returns
from tfrl.trajectories import episodes, policy_step
from tfrl.trajectories import time_step as ts
from tfrl.utils import composite

if TYPE_CHECKING:
    from tfrl.trajectories.trajectory import Trajectory

_StepType = ts.StepType


class Transition(NamedTuple):
    """Transitions `(s, a, s')` of shape `[B, ...]`, or sequences `[B, T, ...]`.

    `next_time_step` holds the reward and discount between `s` and `s'`, which may be n
    steps apart; see `to_n_step_transition`. A transition whose `time_step.step_type` is
    LAST is not a valid transition, and losses mask it.

    Attributes:
      time_step: The first `TimeStep`; its reward and discount are not known.
      action_step: The `PolicyStep` at the first time step; its state is usually `()`.
      next_time_step: The second `TimeStep`.
    """

    time_step: ts.TimeStep
    action_step: policy_step.PolicyStep
    next_time_step: ts.TimeStep

    def __repr__(self) -> str:
        return ts.fields_repr(self)

    def replace(self, **kwargs: Any) -> Transition:
        """Returns a copy with the given fields replaced."""
        return self._replace(**kwargs)


def to_transition(
    trajectory: Trajectory, next_trajectory: Trajectory | None = None
) -> Transition:
    """Makes a transition from each frame and the next frame's observation.

    Two frames that do not belong together (`next_step_type[t] != step_type[t + 1]`) do
    not make a valid transition. Its `time_step.step_type` is then LAST, as it is for a
    boundary. So losses mask both with `~transition.time_step.is_last()`. If the frames'
    step types are `()`, all frames belong together, and the transitions' step types
    are `()`, too.

    Args:
      trajectory: Frames `[B, ...]` or `[B, T, ...]`. If `next_trajectory` is None, they
        must be `[B, T, ...]`, and `trajectory[:, :-1]` is paired with
        `trajectory[:, 1:]`.
      next_trajectory: The frames after the frames of `trajectory`, of the same shape.

    Returns:
      A `Transition` of tensors, `[B, T - 1, ...]` without `next_trajectory`, else of
      the frames' shape. The reward and discount of `time_step` are unknown, so they are
      zeros.

    Raises:
      ValueError: `discount` is not of rank 1 or 2 (2 without `next_trajectory`).
    """
    _check_rank("trajectory.discount", trajectory.discount, (1, 2))
    if next_trajectory is None:
        _check_rank("trajectory.discount", trajectory.discount, (2,))
        next_trajectory = _slice_time(trajectory, 1, None)
        trajectory = _slice_time(trajectory, None, -1)
    trajectory = tf.nest.map_structure(composite.as_tensor, trajectory)
    next_trajectory = tf.nest.map_structure(composite.as_tensor, next_trajectory)
    _check_rank("next_trajectory.discount", next_trajectory.discount, (1, 2))
    step_type = trajectory.step_type
    if _has_step_types(trajectory):
        belongs = tf.equal(trajectory.next_step_type, next_trajectory.step_type)
        step_type = tf.where(belongs, step_type, _StepType.LAST)
    return Transition(
        time_step=ts.TimeStep(
            step_type=step_type,
            reward=tf.nest.map_structure(tf.zeros_like, trajectory.reward),
            discount=tf.zeros_like(trajectory.discount),
            observation=trajectory.observation,
        ),
        action_step=policy_step.PolicyStep(
            action=trajectory.action, state=(), info=trajectory.policy_info
        ),
        next_time_step=ts.TimeStep(
            step_type=trajectory.next_step_type,
            reward=trajectory.reward,
            discount=trajectory.discount,
            observation=next_trajectory.observation,
        ),
    )


def to_n_step_transition(trajectory: Trajectory, gamma: Any) -> Transition:
    """Returns the n-step transition of each row of `T = N + 1` frames.

    With `g = gamma`, and the rewards `r` and discounts `d` of the frames, a transition
    over `k` steps has (Sutton and Barto 2018, section 7.1)

        reward   = r_0 + g d_0 r_1 + ... + g^(k-1) d_0 ... d_(k-2) r_(k-1)
        discount = g^(k-1) d_0 ... d_(k-1)

    in `next_time_step`, with `observation[k]` and `step_type[k]`. The discount has `k -
    1` factors `g`, because the loss multiplies the next value by `g` once more. A
    transition never crosses the end of an episode. `k` is

    - `N` if all frames belong to one episode;
    - smaller if the episode ends earlier: the transition then ends at the LAST step. At
      a termination the discount is 0; at a truncation the value of the last observation
      is bootstrapped;
    - `t` if the sequence is cut between frames `t` and `t + 1`. The reward of frame `t`
      is left out, because the observation after its action is unknown;
    - `N`, too, if the step types are `()`, that is, unknown;
    - 0 if frame 0 is a boundary, or if the sequence is cut after it. There is no
      transition then: `time_step.step_type` is LAST, so that every loss masks it,
      reward and discount are 0, and the next observation has no meaning.

    Args:
      trajectory: Frames `[B, T, ...]` with `T >= 2` and one reward, `[B, T]`.
      gamma: A scalar, the agent's own discount.

    Returns:
      A `Transition` `[B, ...]` without the time dimension. The reward and discount of
      `time_step` are unknown, so they are zeros.

    Raises:
      ValueError: `discount` or `reward` is not of rank 2, or `T < 2`.
    """
    _check_rank("trajectory.discount", trajectory.discount, (2,))
    _check_one_reward(trajectory.reward)
    trajectory = tf.nest.map_structure(composite.as_tensor, trajectory)
    num_frames = trajectory.discount.shape[1]
    if num_frames is not None and num_frames < 2:
        raise ValueError(
            f"trajectory: got {num_frames} frames (discount of shape "
            f"{trajectory.discount.shape}), expected T >= 2 along axis 1; n-step "
            "transitions need n + 1 frames."
        )

    if num_frames == 2 and _has_step_types(trajectory):
        # The general case below has the same result, but three times the operations.
        frame, end = (
            tf.nest.pack_sequence_as(trajectory, frames)
            for frames in zip(
                *(composite.unstack_time(t, 2) for t in tf.nest.flatten(trajectory)),
                strict=True,
            )
        )
        exists = accelerators.equal(frame.next_step_type, end.step_type)
        exists &= ~frame.is_boundary()
        reward = masking.masked(frame.reward, exists)
        discount = masking.masked(frame.discount, exists)
    else:
        frame = tf.nest.map_structure(lambda t: composite.select(t, 0), trajectory)
        inside = inside_episode(trajectory)
        dtype = accelerators.index_dtype()
        num_steps = tf.reduce_sum(tf.cast(inside, dtype), axis=1)
        end = tf.nest.map_structure(
            lambda t: composite.select(t, num_steps), trajectory
        )
        exists = num_steps > 0
        reward, discount = _n_step_reward_and_discount(trajectory, gamma, inside)
    step_type = frame.step_type
    if _has_step_types(trajectory):
        step_type = tf.where(exists, step_type, _StepType.LAST)
    return Transition(
        time_step=ts.TimeStep(
            step_type=step_type,
            reward=tf.zeros_like(reward),
            discount=tf.zeros_like(discount),
            observation=frame.observation,
        ),
        action_step=policy_step.PolicyStep(
            action=frame.action, state=(), info=frame.policy_info
        ),
        next_time_step=ts.TimeStep(
            step_type=end.step_type,
            reward=reward,
            discount=discount,
            observation=end.observation,
        ),
    )


def to_transition_spec(trajectory_spec: Trajectory) -> Transition:
    """Returns the specs of transitions made from frames of `trajectory_spec`."""
    time_step_spec = ts.TimeStep(
        trajectory_spec.step_type,
        reward=trajectory_spec.reward,
        discount=trajectory_spec.discount,
        observation=trajectory_spec.observation,
    )
    action_step_spec = policy_step.PolicyStep(
        action=trajectory_spec.action, state=(), info=trajectory_spec.policy_info
    )
    return Transition(time_step_spec, action_step_spec, time_step_spec)


def experience_to_transitions(
    experience: Trajectory, squeeze_time_dim: bool
) -> Transition:
    """Returns `to_transition(experience)`, without the time dimension if squeezed.

    `squeeze_time_dim` requires `T == 2`, so that each row has one transition.
    """
    transitions = to_transition(experience)
    if not squeeze_time_dim:
        return transitions
    return tf.nest.map_structure(lambda t: composite.squeeze(t, 1), transitions)


def inside_episode(trajectory: Trajectory) -> tf.Tensor:
    """Returns whether step `t` is taken in the episode of frame 0, bool `[B, T - 1]`.

    Each row is True up to the first boundary or cut, and False from there on.
    """
    if not _has_step_types(trajectory):
        return tf.ones_like(trajectory.discount[:, :-1], tf.bool)
    goes_on = episodes.follows(trajectory) & ~trajectory.is_boundary()[:, :-1]
    goes_on = tf.cast(goes_on, accelerators.index_dtype())
    return tf.cast(tf.math.cumprod(goes_on, axis=1), tf.bool)


def _n_step_reward_and_discount(
    trajectory: Trajectory, gamma: Any, inside: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the reward and discount over the steps that are `inside`, each `[B]`."""
    discounts = tf.where(inside, trajectory.discount[:, :-1], 1)
    gammas = tf.where(inside, tf.cast(gamma, discounts.dtype), 1)
    rewards = tf.where(inside, trajectory.reward[:, :-1], 0)
    reward = returns.discounted_return(
        tf.transpose(tf.cast(rewards, discounts.dtype)),
        tf.transpose(gammas * discounts),
    )
    # The product leaves out the first gamma, because the loss multiplies by it.
    discount = tf.reduce_prod(gammas[:, 1:], axis=1) * tf.reduce_prod(discounts, axis=1)
    discount = tf.where(inside[:, 0], discount, 0)
    return reward, tf.stop_gradient(discount)


def _has_step_types(trajectory: Trajectory) -> bool:
    """Whether the step types are tensors; `()` stands for unknown step types."""
    return len(tf.nest.flatten((trajectory.step_type, trajectory.next_step_type))) == 2


def _slice_time(trajectory: Trajectory, start: int | None, end: int | None) -> Any:
    def slice_leaf(leaf: Any) -> Any:
        leaf = composite.as_tensor(leaf)
        if start is not None:
            leaf = composite.slice_from(leaf, axis=1, start=start)
        return leaf if end is None else composite.slice_to(leaf, axis=1, end=end)

    return tf.nest.map_structure(slice_leaf, trajectory)


def _check_one_reward(reward: Any) -> None:
    shapes = tf.nest.map_structure(lambda r: tuple(r.shape), reward)
    if tf.nest.is_nested(reward) or len(shapes) != 2:
        raise ValueError(
            f"trajectory.reward: got shape {shapes}, expected one number a step, "
            "[B, T]; reduce a vector or a nest of rewards to one number before, for "
            "example to a weighted sum."
        )


def _check_rank(name: str, value: Any, ranks: tuple[int, ...]) -> None:
    rank = len(value.shape)
    if rank not in ranks:
        expected = " or ".join(str(r) for r in ranks)
        raise ValueError(
            f"{name}: got rank {rank} (shape {tuple(value.shape)}), expected rank "
            f"{expected}; experience is [B, T, ...], a batched step [B, ...]."
        )
