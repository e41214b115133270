"""Samples one of several kinds of actions, each discrete or with continuous parts.

An action is a dictionary of vectors, exactly one of which has integers: the one-hot
vector of the kind that was chosen. For instance, with the fields

    {"open": float [2], "move": float [3], "kind": int [4]}

and `sub_actions_fields=[["kind"], ["open"], ["move"]]` there are four kinds: two
without parameters, then "open", then "move". The fields of all other kinds are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.policies.samplers import qtopt_cem_actions_sampler
from tfrl.policies.samplers import qtopt_cem_actions_sampler_continuous as continuous
from tfrl.typing import types
from tfrl.utils.random_numbers import seeds


class GaussianActionsSampler(qtopt_cem_actions_sampler.ActionsSampler):
    """Samples each kind of actions in its own part of the `N` samples.

    Each kind without parameters gets one sample. The others share the rest evenly, and
    the last of `sub_actions_fields` gets the remainder.
    """

    def __init__(
        self,
        action_spec: types.NestedTensorSpec,
        sample_clippers: Sequence[Sequence[Any]] | None = None,
        sub_actions_fields: Sequence[Sequence[str]] | None = None,
        sample_rejecters: Sequence[Any] | None = None,
        max_rejection_iterations: int = 10,
    ) -> None:
        """Checks the spec.

        Args:
          action_spec: A dictionary of bounded vectors, one of which has integers.
          sample_clippers: For each of `sub_actions_fields`, a list of functions; see
            `ActionsSampler`.
          sub_actions_fields: The fields of each kind of action; the field of integers
            stands alone, for all kinds without parameters.
          sample_rejecters: For each of `sub_actions_fields`, a function or None; see
            `ActionsSampler`.
          max_rejection_iterations: See `ActionsSampler`.

        Raises:
          ValueError: A field is no vector, there is not exactly one field of integers,
            or the lists do not fit the spec.
        """
        super().__init__(action_spec, ranks=(1,))
        spec = self._action_spec
        is_integer = [leaf.dtype.is_integer for leaf in tf.nest.flatten(spec)]
        if not isinstance(spec, dict) or sum(is_integer) != 1:
            raise ValueError(
                "Only continuous action + 1 one_hot action is supported by this "
                f"sampler, in a dict, got action_spec {action_spec}; use the sampler "
                "of the module qtopt_cem_actions_sampler_hybrid for others."
            )
        self._kind = sorted(spec)[is_integer.index(True)]
        self._fields = [list(names) for names in sub_actions_fields or ()]
        if (
            sorted(name for names in self._fields for name in names) != sorted(spec)
            or [self._kind] not in self._fields
        ):
            raise ValueError(
                f"sub_actions_fields: got {sub_actions_fields}, expected lists that "
                f"cover all keys in action_spec, {sorted(spec)}, each once, and "
                f"{self._kind!r} in a list of its own."
            )
        none = [None] * len(self._fields)
        self._samplers = [
            continuous.GaussianActionsSampler(
                spec, clippers, rejecter, max_rejection_iterations, support_integer=True
            )
            for clippers, rejecter in zip(
                sample_clippers or none, sample_rejecters or none, strict=True
            )
        ]

    def _ranges(self, num_samples: int) -> list[range]:
        """Returns the places of each kind's samples."""
        num_kinds = self._action_spec[self._kind].shape[0]
        if num_samples < num_kinds:
            raise ValueError(
                f"num_samples: got {num_samples}, expected at least one for each of "
                f"the {num_kinds} kinds of actions; draw more samples."
            )
        num_continuous = len(self._fields) - 1
        num_discrete = num_kinds - num_continuous
        share = (num_samples - num_discrete) // max(1, num_continuous)
        sizes = [num_discrete if f == [self._kind] else share for f in self._fields]
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        if self._fields[-1] != [self._kind]:
            ends[-1] = num_samples
        return [range(*each) for each in zip([0, *ends], ends, strict=False)]

    def refit_distribution_to(
        self, target_sample_indices: tf.Tensor, samples: Any
    ) -> tuple[Any, Any]:
        """Returns the mean and the variance of the best samples, dicts of `[B, A]`.

        Those of a field are of the best samples of its own kind; zero if there are
        none.
        """
        index, mean, var = target_sample_indices, {}, {}
        ranges = self._ranges(samples[self._kind].shape[1])
        for names, places in zip(self._fields, ranges, strict=True):
            own = (index >= places.start) & (index < places.stop)
            own = tf.cast(own, tf.float32)[..., tf.newaxis]
            share = tf.math.divide_no_nan(own, tf.reduce_sum(own, 1, keepdims=True))
            for name in names:
                chosen = tf.cast(samples[name], tf.float32)
                chosen = tf.gather(chosen, index, batch_dims=1)
                mean[name] = tf.reduce_sum(share * chosen, axis=1)
                squares = tf.square(chosen - mean[name][:, tf.newaxis])
                var[name] = tf.reduce_sum(share * squares, axis=1)
        return mean, var

    def sample_batch_and_clip(
        self,
        num_samples: int,
        mean: Any,
        var: Any,
        state: Any = None,
        *,
        seed: tf.Tensor | None = None,
    ) -> Any:
        """Returns a dict of actions `[B, N, A]`; see `ActionsSampler`.

        Raises:
          ValueError: `num_samples` is less than the number of kinds.
        """
        spec = self._action_spec[self._kind]
        each: Any = [None] * len(self._fields)
        if seed is not None:
            each = seeds.split_seed(seed, len(self._fields))
        parts, kind = [], 0
        for i, places in enumerate(self._ranges(num_samples)):
            number, discrete = len(places), self._fields[i] == [self._kind]
            own = [0.0 if discrete else float(k in self._fields[i]) for k in mean]
            masks = dict(zip(mean, own, strict=True))
            own_mean, own_var = (
                {k: x * masks[k] for k, x in nest.items()} for nest in (mean, var)
            )
            own_mean[self._kind] += tf.one_hot(kind, spec.shape[0])
            drawn: Any = self._samplers[i].sample_batch_and_clip(
                number, own_mean, own_var, state, seed=each[i]
            )
            kinds = kind + (
                tf.range(number) if discrete else tf.zeros(number, tf.int32)
            )
            one_hot = tf.one_hot(kinds, spec.shape[0], dtype=spec.dtype)
            drawn[self._kind] = tf.zeros_like(drawn[self._kind]) + one_hot
            parts.append(drawn)
            kind += number if discrete else 1
        return tf.nest.map_structure(lambda *x: tf.concat(x, axis=1), *parts)
