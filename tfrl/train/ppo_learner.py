"""Trains a PPO agent on new experience, like TF-Agents' `PPOLearner`.

```python
agent = PPOClipAgent(
    ...,
    num_epochs=1,
    compute_value_and_advantage_in_train=False,
    update_normalizers_in_train=False,
)
learner = PPOLearner(
    root_dir,
    agent.train_step_counter,
    agent,
    lambda: replay_buffer.as_dataset(
        sample_batch_size=1, sequence_preprocess_fn=agent.preprocess_sequence
    ),
    None,
    num_samples=10,
    num_epochs=10,
    minibatch_size=64,
)
```
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.train import distribution, learner
from tfrl.trajectories import episodes, trajectory
from tfrl.utils import common, number_checks
from tfrl.utils.random_numbers import seeds

if TYPE_CHECKING:
    from tfrl.agents.ppo import ppo_agent


class PPOLearner:
    """Draws all experience of an iteration once, and trains on it for some epochs.

    It differs from TF-Agents' in three points: the normalizers get the experience after
    the training, so that the first importance ratios are 1; only steps of an
    environment are in minibatches, no padding and no boundaries; and each epoch is a
    permutation, so that every step is in it once.
    """

    def __init__(
        self,
        root_dir: str | os.PathLike,
        train_step: tf.Variable,
        agent: ppo_agent.PPOAgent,
        experience_dataset_fn: Callable[[], tf.data.Dataset],
        normalization_dataset_fn: Callable[[], tf.data.Dataset] | None,
        num_samples: int,
        num_epochs: int = 1,
        minibatch_size: int | None = None,
        shuffle_buffer_size: int | None = None,
        after_train_strategy_step_fn: Callable[..., object] | None = None,
        triggers: Sequence[Callable[..., object]] | None = None,
        checkpoint_interval: int = 100_000,
        summary_interval: int | None = 1000,
        use_kwargs_in_agent_train: bool = False,
        strategy: tf.distribute.Strategy | None = None,
        *,
        seed: int | None = None,
        jit_compile: bool = False,
    ) -> None:
        """Makes the datasets, and a `Learner`, which restores the latest checkpoint.

        Args:
          root_dir: See `Learner`.
          train_step: See `Learner`.
          agent: A `PPOAgent` with `update_normalizers_in_train=False` and, for
            minibatches, `compute_value_and_advantage_in_train=False`.
          experience_dataset_fn: Makes the dataset of pairs `(experience, sample_info)`,
            experience `[B, T, ...]` that `agent.preprocess_sequence` has returned. It
            is called once; each run reads the dataset from its beginning.
          normalization_dataset_fn: Makes a second dataset of the same steps for the
            normalizers. It is needed for tables of a replay server that give each item
            once. With None, the normalizers get the experience of the first dataset.
          num_samples: The number of elements of the dataset that a run draws.
          num_epochs: The number of times that a run trains on each element.
          minibatch_size: The largest number of steps in a minibatch `[N, 1, ...]`, of
            one replica. An epoch is divided into minibatches of equal sizes, give or
            take one step. None trains on whole elements, as recurrent networks need.
          shuffle_buffer_size: Has no effect, since the steps of all elements are
            permuted.
          after_train_strategy_step_fn: See `Learner`; the `sample_info` of minibatches
            is `()`.
          triggers: See `Learner`.
          checkpoint_interval: See `Learner`.
          summary_interval: See `Learner`.
          use_kwargs_in_agent_train: See `Learner`.
          strategy: See `Learner`.
          seed: Seed of the permutations, which also depend on the train step; None
            draws a seed.
          jit_compile: See `Learner`.

        Raises:
          ValueError: The agent updates its normalizers while it trains; or, with
            minibatches, it is recurrent or computes advantages while it trains; or a
            number is not positive.
        """
        del shuffle_buffer_size
        number_checks.check_sizes(num_samples=num_samples, num_epochs=num_epochs)
        number_checks.check_sizes(optional=True, minibatch_size=minibatch_size)
        _check_agent(agent, minibatch_size)
        self._agent = agent
        self._num_samples = num_samples
        self._num_epochs = num_epochs
        self._minibatch_size = minibatch_size
        self._seed = seeds.draw_number() if seed is None else seed
        self._learner = learner.Learner(
            root_dir,
            train_step,
            agent,
            after_train_strategy_step_fn=after_train_strategy_step_fn,
            triggers=triggers,
            checkpoint_interval=checkpoint_interval,
            summary_interval=summary_interval,
            use_kwargs_in_agent_train=use_kwargs_in_agent_train,
            strategy=strategy,
            jit_compile=jit_compile,
            # The normalizers change after all epochs.
            update_normalizers=False,
            train_settings={"ends_iteration": False},
        )
        self._experience = experience_dataset_fn()
        self._normalization = (
            None if normalization_dataset_fn is None else normalization_dataset_fn()
        )
        # A dataset made in each run would be traced in each run.
        self._make_batches: Callable[[], Iterable[Any]] = tuple
        self._training_data = tf.data.Dataset.from_generator(
            lambda: self._make_batches(), output_signature=self._batch_spec()
        )
        self._update_normalizers = common.function(agent.update_normalizers)

    @property
    def train_step_numpy(self) -> Any:
        """The current train step, a NumPy scalar."""
        return self._learner.train_step_numpy

    def run(self, parallel_iterations: int = 10) -> tf_agent.LossInfo:
        """Draws experience, trains on it, and then updates the normalizers with it.

        Args:
          parallel_iterations: Has no effect; see `Learner.run`.

        Returns:
          The `LossInfo` of the last train step.

        Raises:
          ValueError: The dataset ends before `num_samples` elements, or holds no step
            of an environment.
        """
        elements = _drawn(self._experience, self._num_samples, "experience_dataset_fn")
        strategy = self._learner.strategy
        number, self._make_batches = self._divided(elements)
        batches = distribution.iterator(strategy, lambda _: self._training_data)
        loss_info = self._learner.run(
            number // strategy.num_replicas_in_sync, batches, parallel_iterations
        )
        with strategy.scope():
            self._agent.end_iteration([experience for experience, _ in elements])
        if self._normalization is not None:
            elements = _drawn(
                self._normalization, self._num_samples, "normalization_dataset_fn"
            )
        with strategy.scope():
            for experience, _ in elements:
                self._update_normalizers(experience)
        return loss_info

    def _divided(self, elements: list[Any]) -> tuple[int, Callable[[], Iterable[Any]]]:
        """Returns the number of the epochs' batches, and a function that makes them."""
        replicas = self._learner.strategy.num_replicas_in_sync
        if self._minibatch_size is None:
            batches = elements * self._num_epochs
            if len(batches) % replicas:
                raise ValueError(
                    f"num_samples: got {len(elements)} samples for {self._num_epochs} "
                    f"epoch(s), expected a multiple of the {replicas} replicas; change "
                    "num_samples."
                )
            return len(batches), lambda: batches
        steps = _joined([_steps(experience) for experience, _ in elements])
        number = len(tf.nest.flatten(steps)[0])
        parts = replicas * math.ceil(number / (replicas * self._minibatch_size))
        if not 0 < parts <= number:
            raise ValueError(
                f"num_samples: got {number} step(s) of environments in {len(elements)} "
                f"sample(s), expected at least one for each of {replicas} replica(s); "
                "collect more before a run."
            )
        # NumPy takes no negative seeds.
        entropy = [self._seed % 2**64, int(self.train_step_numpy)]
        rng = np.random.default_rng(entropy)
        rows = [
            part
            for _ in range(self._num_epochs)
            for part in np.array_split(rng.permutation(number), parts)
        ]
        return len(rows), lambda: ((_rows(steps, part), ()) for part in rows)

    def _batch_spec(self) -> Any:
        if self._minibatch_size is None:
            return self._experience.element_spec
        experience, _ = self._experience.element_spec
        return (
            tf.nest.map_structure(
                lambda spec: tf.TensorSpec([None, 1, *spec.shape[2:]], spec.dtype),
                experience,
            ),
            (),
        )


def _drawn(dataset: tf.data.Dataset, number: int, name: str) -> list[Any]:
    """Returns the first elements of a dataset."""
    elements = list(dataset.take(number))
    if len(elements) < number:
        raise ValueError(
            f"{name}: its dataset ended after {len(elements)} element(s), expected "
            f"num_samples={number}; collect more, or lower num_samples."
        )
    return elements


def _steps(frames: trajectory.Trajectory) -> Any:
    """Returns the steps of an environment among frames `[B, T, ...]`, `[N, ...]`."""
    counts = (~(frames.is_boundary() | episodes.is_padding(frames))).numpy()
    return tf.nest.map_structure(lambda leaf: leaf.numpy()[counts], frames)


def _joined(parts: list[Any]) -> Any:
    return tf.nest.map_structure(lambda *leaves: np.concatenate(leaves), *parts)


def _rows(steps: Any, rows: np.ndarray) -> Any:
    """Returns rows of steps as sequences of one step, `[N, 1, ...]`."""
    return tf.nest.map_structure(lambda leaf: leaf[rows][:, np.newaxis], steps)


def _check_agent(agent: Any, minibatch_size: int | None) -> None:
    if agent.update_normalizers_in_train:
        raise ValueError(
            "agent: got update_normalizers_in_train=True, expected False, since the "
            "PPOLearner updates the normalizers after its last train step; make the "
            "agent with update_normalizers_in_train=False."
        )
    if minibatch_size is None:
        return
    if agent.collect_policy.is_recurrent:
        raise ValueError(
            f"minibatch_size: got {minibatch_size} for a recurrent agent, which needs "
            "whole sequences, expected None."
        )
    if agent.compute_value_and_advantage_in_train:
        raise ValueError(
            f"minibatch_size: got {minibatch_size} for an agent with "
            "compute_value_and_advantage_in_train=True, which needs whole sequences; "
            "make it with False, and the dataset with "
            "sequence_preprocess_fn=agent.preprocess_sequence."
        )
