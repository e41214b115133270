"""A policy that explores by adding Gaussian noise to continuous actions."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfrl.policies import bases, tf_policy
from tfrl.typing import types
from tfrl.utils import number_checks
from tfrl.utils.optimization import schedules
from tfrl.utils.random_numbers import seeds


class GaussianPolicy(bases.NoisePolicy):
    """Adds independent noise from `N(0, scale^2)` to another policy's actions.

    This is the exploration of TD3 (Fujimoto et al. 2018, arXiv:1802.09477, section
    6.1). State and `info` come from the wrapped policy, so a log-probability in `info`
    belongs to the action without noise.
    """

    def __init__(
        self,
        wrapped_policy: tf_policy.TFPolicy,
        scale: types.FloatOrSchedule = 1.0,
        clip: bool = True,
        name: str | None = None,
        *,
        step: tf.Variable | None = None,
        seed: int | None = None,
        scaled_to_spec: bool = False,
    ) -> None:
        """Creates the policy.

        Args:
          wrapped_policy: A policy whose actions are all floats.
          scale: Standard deviation of the noise, in the units of the action unless
            `scaled_to_spec`: a number, a scalar tensor or variable, a callable that
            returns one of these, or a Keras schedule of `step`.
          clip: Whether `action` clips to the bounds of the action spec.
          name: The module's name.
          step: The variable that a schedule given as `scale` follows, such as an
            agent's `train_step_counter`.
          seed: See `TFPolicy`.
          scaled_to_spec: See `NoisePolicy`.

        Raises:
          ValueError: An action is discrete, or `scale` is a negative number or a
            schedule without `step`.
        """
        number_checks.check_number("scale", scale, 0, remedy="0 adds no noise")
        super().__init__(
            wrapped_policy,
            clip=clip,
            name=name,
            seed=seed,
            scaled_to_spec=scaled_to_spec,
        )
        self._scale = schedules.follow("scale", scale, step)

    def _draw_noise(
        self, like: Sequence[tf.Tensor], noise_seeds: Sequence[tf.Tensor]
    ) -> list[tf.Tensor]:
        scale = schedules.current_value(self._scale)
        return [
            tf.cast(scale, value.dtype)
            * seeds.normal(seed, tf.shape(value), dtype=value.dtype)
            for value, seed in zip(like, noise_seeds, strict=True)
        ]
