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

from tfrl.policies.samplers import qtopt_cem_actions_sampler as sampling
from tfrl.typing import types
from tfrl.utils.random_numbers import seeds


class GaussianActionsSampler(sampling.ActionsSampler):
    """Samples each kind of actions in its own part of the `N` samples.

    Each kind without parameters gets one sample. The others share the rest evenly, and
    the last of `sub_actions_fields` gets the remainder. See `ActionsSampler` for the
    shapes.
    """

    def __init__(
        self,
        action_spec: types.NestedTensorSpec,
        sample_clippers: Sequence[Sequence[sampling.Clipper]] | None = None,
        sub_actions_fields: Sequence[Sequence[str]] | None = None,
        sample_rejecters: Sequence[sampling.Rejecter | None] | None = None,
        max_rejection_iterations: int = 10,
    ) -> None:
        """Checks the spec.

        Args:
          action_spec: A dictionary of bounded vectors, one of which has integers.
          sample_clippers: For each of `sub_actions_fields`, functions that change
            samples, in turn, before they are clipped to the bounds.
          sub_actions_fields: The fields of each kind of action; the field of integers
            stands alone, for all kinds without parameters.
          sample_rejecters: For each of `sub_actions_fields`, a function that says which
            samples are allowed, or None. The others are drawn again; places that stay
            empty have zeros as parameters.
          max_rejection_iterations: How often samples are drawn then.

        Raises:
          ValueError: A field is no vector, there is not exactly one field of integers,
            or the fields do not cover the spec.
        """
        super().__init__(action_spec, sample_clippers, sample_rejecters)
        self._kind = self._check_spec(action_spec)
        if sample_clippers is None:
            raise ValueError("Sampler clippers must be set! Give a list for each kind.")
        if sub_actions_fields is None:
            raise ValueError("sub_actions_fields must be set! List each kind's fields.")
        if len(sample_clippers) != len(sub_actions_fields):
            raise ValueError(
                "Number of sample_clippers must be the same as number of "
                f"sub_actions_fields! Got {len(sample_clippers)} and "
                f"{len(sub_actions_fields)}; give an empty list where nothing clips."
            )
        fields = sorted(name for names in sub_actions_fields for name in names)
        if fields != sorted(self._action_spec):
            raise ValueError(
                "sub_actions_fields must cover all keys in action_spec, each once! Got "
                f"{fields}, expected {sorted(self._action_spec)}."
            )
        if [self._kind] not in [list(names) for names in sub_actions_fields]:
            raise ValueError(
                "Categorical action cannot be grouped together w/ continuous action "
                f"into a sub_action: give {self._kind!r} a list of its own."
            )
        self._fields = [tuple(names) for names in sub_actions_fields]
        self._rejecters = sample_rejecters or [None] * len(self._fields)
        self._max_rejection_iterations = max_rejection_iterations

    def _check_spec(self, action_spec: Any) -> str:
        """Checks the specs, and returns the name of the field of integers."""
        sampling.check_vectors(self._action_spec, (1,))
        flat = tf.nest.flatten(self._action_spec)
        if sum(spec.dtype.is_integer for spec in flat) != 1 or not isinstance(
            self._action_spec, dict
        ):
            raise ValueError(
                "Only continuous action + 1 one_hot action is supported by this "
                f"sampler, in a dict; got action_spec {action_spec}."
            )
        (kind,) = (n for n, spec in self._action_spec.items() if spec.dtype.is_integer)
        return str(kind)

    def refit_distribution_to(
        self, target_sample_indices: tf.Tensor, samples: types.NestedTensor
    ) -> tuple[types.NestedTensor, types.NestedTensor]:
        """Returns the mean and the variance of the best samples, dicts of `[B, A]`.

        Those of a field are of the best samples of its own kind; zero if there are
        none.
        """
        indices = target_sample_indices
        num_samples = samples[self._kind].shape[1]
        mean, var = {}, {}
        for names, (low, high) in zip(
            self._fields, self._ranges(num_samples), strict=True
        ):
            own = tf.cast((indices >= low) & (indices < high), tf.float32)[..., None]
            number = tf.reduce_sum(own, axis=1)
            for name in names:
                chosen = tf.cast(samples[name], tf.float32)
                chosen = tf.gather(chosen, indices, batch_dims=1)
                if name == self._kind:
                    mean[name] = var[name] = tf.zeros_like(chosen[:, 0])
                    continue
                total = tf.reduce_sum(own * chosen, axis=1)
                mean[name] = tf.math.divide_no_nan(total, number)
                squares = own * tf.square(chosen - mean[name][:, tf.newaxis])
                total = tf.reduce_sum(squares, axis=1)
                var[name] = tf.math.divide_no_nan(total, number)
        return mean, var

    def sample_batch_and_clip(
        self,
        num_samples: int,
        mean: types.NestedTensor,
        var: types.NestedTensor,
        state: types.NestedTensor = None,
        *,
        seed: tf.Tensor | None = None,
    ) -> types.NestedTensor:
        """Returns a dict of actions `[B, N, A]`; see `ActionsSampler`.

        Raises:
          ValueError: `num_samples` is less than the number of kinds.
        """
        parts, kind = [], 0
        each = seeds.split_seed(sampling.as_seed(seed), len(self._fields))
        for i, (low, high) in enumerate(self._ranges(num_samples)):
            number = high - low
            discrete = self._fields[i] == (self._kind,)
            kinds = range(kind, kind + number) if discrete else [kind] * number
            kind += number if discrete else 1
            still = self._still(mean, kinds)
            parts.append(
                still
                if discrete
                else self._moving(i, still, number, mean, var, state, each[i])
            )
        return tf.nest.map_structure(lambda *x: tf.concat(x, axis=1), *parts)

    def _ranges(self, num_samples: int) -> list[tuple[int, int]]:
        """Returns the first and the last place, excluded, of each kind's samples."""
        num_kinds = self._action_spec[self._kind].shape[0]
        if num_samples < num_kinds:
            raise ValueError(
                f"num_samples: got {num_samples}, expected at least one for each of "
                f"the {num_kinds} kinds of actions; draw more samples."
            )
        num_continuous = len(self._fields) - 1
        num_discrete = num_kinds - num_continuous
        share = (num_samples - num_discrete) // max(1, num_continuous)
        ranges, low = [], 0
        for i, names in enumerate(self._fields):
            if names == (self._kind,):
                high = low + num_discrete
            else:
                high = num_samples if i == len(self._fields) - 1 else low + share
            ranges.append((low, high))
            low = high
        return ranges

    def _still(self, mean: Any, kinds: Sequence[int]) -> dict[str, tf.Tensor]:
        """Returns actions of the given kinds whose parameters are zero."""
        batch = tf.shape(mean[self._kind])[0]
        one_hot = tf.one_hot(list(kinds), self._action_spec[self._kind].shape[0])
        return {
            name: tf.cast(
                tf.zeros([batch, len(kinds), *spec.shape])
                + (one_hot if name == self._kind else 0.0),
                spec.dtype,
            )
            for name, spec in self._action_spec.items()
        }

    def _moving(
        self,
        i: int,
        still: dict[str, tf.Tensor],
        number: int,
        mean: Any,
        var: Any,
        state: Any,
        seed: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Returns samples of the kind `i`, `[B, number, A]`."""
        own = {name: mean[name] for name in self._fields[i]}
        own_var = {name: var[name] for name in self._fields[i]}

        def draw(own_seed: tf.Tensor) -> Any:
            samples = {**still, **sampling.gaussian(number, own, own_var, own_seed)}
            for clipper in self._sample_clippers[i]:
                samples = clipper(samples, state)
            return sampling.clip_to_spec(samples, self._action_spec)

        rejecter = self._rejecters[i]
        if rejecter is None:
            return draw(seed)
        return sampling.accepted(
            draw,
            lambda drawn: rejecter(drawn, state),
            still,
            self._max_rejection_iterations,
            seed,
        )
