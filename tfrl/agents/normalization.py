"""Normalizes an agent's inputs: observations in networks, rewards in losses.

Replay buffers keep observations and rewards unchanged. Each network of an agent sees
observations through the agent's normalizer, both in policies and in losses, so that all
of them use the same statistics. The statistics change only in `Normalizers.update`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.compilation import replicas
from tfrl.networks import network as network_lib
from tfrl.networks import normalized_network
from tfrl.specs import tensor_spec
from tfrl.trajectories import episodes, trajectory
from tfrl.utils import nest_utils
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import TensorNormalizer

if TYPE_CHECKING:
    from tfrl.typing import types


class Normalizers(tf.Module):
    """An agent's normalizers, each of which may be None."""

    def __init__(
        self,
        observation_normalizer: TensorNormalizer | None,
        reward_normalizer: RewardNormalizer | None,
        splitter: types.Splitter | None = None,
    ) -> None:
        """Stores the normalizers.

        Args:
          observation_normalizer: The normalizer that the agent's networks were wrapped
            with.
          reward_normalizer: The normalizer of the rewards.
          splitter: See `TFPolicy`'s `observation_and_action_constraint_splitter`. The
            observation normalizer is for the networks' part of the observations.

        Raises:
          TypeError: The reward normalizer is of another kind.
        """
        super().__init__()
        if not isinstance(reward_normalizer, RewardNormalizer | None):
            raise TypeError(
                f"reward_normalizer: got {reward_normalizer!r}, expected a "
                "utils.reward_normalizer.RewardNormalizer, or None; "
                "gamma=0 makes one that divides by the standard deviation of the "
                "rewards themselves."
            )
        self.observation_normalizer = observation_normalizer
        self.reward_normalizer = reward_normalizer
        self._splitter = splitter

    def update(self, frames: trajectory.Trajectory) -> None:
        """Adds frames `[B, ...]` or `[B, T, ...]` to the statistics.

        The frames of an environment hold each of its observations once: the boundary
        frame after an episode holds the last one. The reward of a boundary frame does
        not count, and padding does not count at all. In the replicas of a
        `tf.distribute` strategy, the frames of all replicas count.
        """
        if self.observation_normalizer is None and self.reward_normalizer is None:
            return
        frames = replicas.gathered(frames._replace(action=(), policy_info=()))
        counts = ~episodes.is_padding(frames)
        if self.observation_normalizer is not None:
            observation = frames.observation
            if self._splitter is not None:
                observation, _ = self._splitter(observation)
            outer_dims = list(range(counts.shape.rank))
            self.observation_normalizer.update(observation, outer_dims, mask=counts)
        if self.reward_normalizer is not None:
            self.reward_normalizer.update(
                frames.reward, frames.is_first(), counts & ~frames.is_boundary()
            )

    def normalize_rewards(self, experience: Any) -> Any:
        """Returns a `Trajectory`, `Transition` or `TimeStep` with normalized rewards.

        Anything else is returned as it is.
        """
        if self.reward_normalizer is None:
            return experience
        if hasattr(experience, "next_time_step"):
            reached = self.normalize_rewards(experience.next_time_step)
            return experience._replace(next_time_step=reached)
        if hasattr(experience, "reward"):
            reward = self.reward_normalizer.normalize(experience.reward)
            return experience._replace(reward=reward)
        return experience


def normalized_networks(
    normalizer: TensorNormalizer | None,
    observation_spec: types.NestedTensorSpec,
    *networks: Any,
) -> list[Any]:
    """Wraps networks of observations, so that the observations are normalized.

    Args:
      normalizer: The normalizer; None returns the networks as they are.
      observation_spec: The specs of the networks' inputs.
      *networks: `Network`s, Keras layers or models, or None.

    Raises:
      TypeError: The normalizer is of another kind.
      ValueError: The normalizer's specs differ from the specs of the observations, or
        are not floats.
    """
    return _wrapped(normalizer, observation_spec, observation_spec, networks)


def normalized_critics(
    normalizer: TensorNormalizer | None,
    input_spec: tuple[types.NestedTensorSpec, types.NestedTensorSpec],
    *critics: Any,
) -> list[Any]:
    """Wraps networks of observations and actions, so that observations are normalized.

    Args:
      normalizer: See `normalized_networks`.
      input_spec: The pair of observation specs and action specs.
      *critics: See `normalized_networks`.

    Raises:
      TypeError: See `normalized_networks`.
      ValueError: See `normalized_networks`.
    """
    return _wrapped(normalizer, input_spec[0], input_spec, critics, takes_action=True)


def _wrapped(
    normalizer: Any,
    observation_spec: Any,
    input_spec: Any,
    networks: tuple[Any, ...],
    takes_action: bool = False,
) -> list[Any]:
    if normalizer is None:
        return list(networks)
    _check_normalizer(normalizer, observation_spec)
    return [
        None
        if network is None
        else normalized_network.NormalizedNetwork(
            network_lib.as_network(network, input_spec),
            normalizer,
            input_spec,
            takes_action=takes_action,
        )
        for network in networks
    ]


def _check_normalizer(normalizer: Any, observation_spec: Any) -> None:
    if not isinstance(normalizer, TensorNormalizer):
        raise TypeError(
            f"observation_normalizer: got {normalizer!r}, expected a TensorNormalizer "
            "or None; make one, such as utils.tensor_normalizer."
            "StreamingTensorNormalizer(environment.observation_spec())."
        )
    observation_spec = tensor_spec.from_spec(observation_spec)
    for path, spec in nest_utils.flatten_with_joined_paths(observation_spec):
        if not spec.dtype.is_floating:
            raise ValueError(
                "observation_normalizer: expected floating-point observations, got "
                f"{path or 'one'} of dtype {spec.dtype.name}, in which normalized "
                "numbers would be truncated; leave the normalizer out and scale in "
                "the network's preprocessing layers, or make the observation floats "
                "in an environment wrapper."
            )
    given, expected = map(_described, (normalizer.tensor_spec, observation_spec))
    if given != expected:
        raise ValueError(
            f"observation_normalizer: got one for {given}, expected one for "
            f"{expected}, the observations that the networks see; make it from their "
            "specs."
        )


def _described(specs: Any) -> str:
    """Returns the paths, dtypes and shapes of a nest of specs as text."""
    return ", ".join(
        f"{path} {spec.dtype.name} {tuple(spec.shape)}".lstrip()
        for path, spec in nest_utils.flatten_with_joined_paths(specs)
    )
