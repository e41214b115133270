"""Random network distillation: rewards for observations that were rarely seen.

The intrinsic reward of a step is the error with which a trained network f' predicts the
output of a fixed, random network f for the observation that the step has reached,

    i = mean |f'(s') - f(s')|^2,

divided by the running deviation of its discounted returns, which do not end with
episodes. The networks get normalized observations, clipped to [-5, 5]. Burda et al.,
"Exploration by random network distillation" (2018, arXiv:1810.12894), section 2.

The paper has a second value head, so that intrinsic returns have their own discount and
go on after an episode's end. Here both rewards are added up, with one critic: values of
a sum are the sum of the values if both have the same discount and episodes (section
2.3), and PPO stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl import losses
from tfrl.agents import updates
from tfrl.compilation import replicas
from tfrl.networks.layers import preprocessing
from tfrl.specs import tensor_spec
from tfrl.trajectories import episodes, trajectory
from tfrl.utils import actions, number_checks, reward_normalizer, tensor_normalizer

if TYPE_CHECKING:
    from tfrl.typing import types


class RandomNetworkDistillation(tf.Module):
    """The networks and the statistics of intrinsic rewards, for `PPOAgent(rnd=...)`."""

    def __init__(
        self,
        target: types.Network,
        predictor: types.Network,
        coefficient: float,
        num_envs: int,
        gamma: float = 0.99,
        observation_spec: types.NestedTensorSpec | None = None,
    ) -> None:
        """Builds the networks.

        Args:
          target: The fixed network, which maps observations of `network_spec`, or
            float32 ones of the environment's shapes, to vectors `[B, n]`.
          predictor: The network that is trained to predict its output.
          coefficient: The weight of the intrinsic rewards beside the environment's.
          num_envs: The number of environments that are stepped together.
          gamma: The discount of the intrinsic returns by whose deviation the intrinsic
            rewards are divided.
          observation_spec: The nest of specs of the environment's observations, whose
            choices become one-hot vectors; None casts all observations to floats.

        Raises:
          ValueError: A number is out of range, or the networks' outputs differ.
        """
        super().__init__()
        number_checks.check_number(
            "coefficient", coefficient, 0.0, remedy="1 weighs both rewards alike"
        )
        outputs = [network.create_variables() for network in (target, predictor)]
        if outputs[0] != outputs[1] or outputs[0].shape.rank != 1:
            raise ValueError(
                f"predictor: its output is {outputs[1]}, expected that of the target, "
                f"{outputs[0]}, a vector; give both the same last layer."
            )
        self.target = target
        self.predictor = predictor
        # As the predictor was before the epochs with the latest frames: it gave their
        # rewards.
        self._rewarding = predictor.copy(name="rewarding_predictor")
        self._rewarding.create_variables()
        updates.copy_weights([(predictor, self._rewarding)])
        self._coefficient = coefficient
        self._observation_spec = (
            None
            if observation_spec is None
            else tensor_spec.from_spec(observation_spec)
        )
        self._observations = tensor_normalizer.StreamingTensorNormalizer(
            target.input_tensor_spec
        )
        self._rewards = reward_normalizer.RewardNormalizer(
            num_envs, gamma, clip_value=0.0
        )

    def errors(
        self, observation: types.NestedTensor, predictor: types.Network | None = None
    ) -> tf.Tensor:
        """Returns the errors of the prediction, `[B, T]` or `[B]`.

        Args:
          observation: The nest of observations, `[B, T, ...]` or `[B, ...]`.
          predictor: The network that predicts; `self.predictor` if None.
        """
        seen = self._observations.normalize(self._floats(observation))
        fixed, _ = self.target(seen)
        predicted, _ = (predictor or self.predictor)(seen)
        return losses.distillation_error(
            *(tf.cast(output, tf.float32) for output in (predicted, fixed))
        )

    def rewards(self, observation: types.NestedTensor) -> tf.Tensor:
        """Returns the weighted intrinsic rewards of frames, `[B, T]`.

        The last of each row, whose next observation is not known, is 0.

        Args:
          observation: The observations of the frames, `[B, T, ...]`.
        """
        reached = tf.stop_gradient(self.errors(observation))[:, 1:]
        scaled = self._coefficient * self._rewards.normalize(reached)
        return tf.pad(scaled, [[0, 0], [0, 1]])

    def update(self, frames: trajectory.Trajectory) -> None:
        """Adds frames `[B, ...]` or `[B, T, ...]` to the statistics.

        Those of the rewards take the errors before the epochs with these frames, from
        which their rewards were computed.
        """
        frames = replicas.gathered(frames._replace(action=(), policy_info=()))
        counts = ~episodes.is_padding(frames)
        errors = self.errors(frames.observation, self._rewarding)
        self._rewards.update(errors, tf.zeros_like(counts), counts)
        updates.copy_weights([(self.predictor, self._rewarding)])
        outer_dims = list(range(counts.shape.rank))
        floats = self._floats(frames.observation)
        self._observations.update(floats, outer_dims, mask=counts)

    def _floats(self, observation: types.NestedTensor) -> types.NestedTensor:
        """Returns observations `[B(, T), ...]` as float32, with one-hot choices."""
        if self._observation_spec is None:
            return tf.nest.map_structure(lambda x: tf.cast(x, tf.float32), observation)
        return tf.nest.map_structure(_as_floats, observation, self._observation_spec)


def _as_floats(x: tf.Tensor, spec: tf.TensorSpec) -> tf.Tensor:
    """Returns `[B(, T), ...]` as float32; choices as one-hot vectors."""
    layer = preprocessing.one_hot(spec)
    if layer is None:
        return tf.cast(x, tf.float32)
    outer_rank = x.shape.rank - spec.shape.rank
    vectors = layer(x)
    inner = vectors.shape[-1:]
    outer = tf.shape(x)[:outer_rank]
    shaped = tf.reshape(vectors, tf.concat([outer, inner], axis=0))
    return tf.ensure_shape(shaped, x.shape[:outer_rank] + inner)


def network_spec(observation_spec: types.NestedTensorSpec) -> types.NestedTensorSpec:
    """Returns the nest of specs of normalized observations, for the networks.

    Choices, as in `networks.layers.preprocessing`, are one-hot vectors, and all others
    have their shapes. Bounds remain bounds, so that images are known as such.

    Args:
      observation_spec: The nest of specs of the environment's observations.
    """

    def normalized(spec: tf.TensorSpec) -> tf.TensorSpec:
        layer = preprocessing.one_hot(spec)
        if layer is not None:
            return tf.TensorSpec(layer.compute_output_shape((None,))[1:], tf.float32)
        if spec.dtype.is_floating and not actions.has_finite_range(spec):
            return tf.TensorSpec(spec.shape, tf.float32)
        return tensor_spec.BoundedTensorSpec(spec.shape, tf.float32, -5.0, 5.0)

    return tf.nest.map_structure(normalized, tensor_spec.from_spec(observation_spec))
