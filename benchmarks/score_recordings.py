"""Makes the recordings from which agents of the score table learn, and reads them."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from benchmarks.score_entries import Recording
from tfrl.algorithms.recipe import Recipe
from tfrl.experiments import children
from tfrl.system import jobs


def make(recording: Recording, is_stopped: Callable[[], bool]) -> None:
    """Trains a recording's run, if it is not trained yet, and records it.

    Raises:
      RuntimeError: One of the two failed, or was stopped.
    """
    unfinished = recording.folder / "unfinished.tfrecord"
    recipe = Recipe.from_json(recording.entry.settings())
    train_run = children.ChildRun(recording.folder, recipe, {}).job()
    words = recording.words(unfinished)
    for job in (train_run, jobs.Job("tfrl", words, train_run.output)):
        if jobs.run_all([job], 1, is_stopped, lambda *_: None) != [0]:
            raise RuntimeError(
                f"{job.module} made no recording; the end of {job.output} says why. "
                "The same command tries it again."
            )
    os.replace(f"{unfinished}.spec", f"{recording.path}.spec")
    os.replace(unfinished, recording.path)


def steps_of(recording: Recording) -> dict[str, np.ndarray]:
    """Returns the recorded steps by name, each array `[N, ...]`.

    They are "observations", "actions", "rewards", "terminals" and "timeouts": the last
    two are True where an episode ended, or was cut, after the step. The last step ends
    an episode in any case.

    Raises:
      FileNotFoundError: The recording is not made yet.
    """
    # Not at the top: tables do not wait for TensorFlow.
    import tensorflow as tf

    from tfrl import datasets
    from tfrl.trajectories import time_step

    blocks = datasets.load_recordings(str(recording.path)).batch(1024)
    frames = tf.nest.map_structure(
        lambda *parts: np.concatenate(parts), *blocks.as_numpy_iterator()
    )
    last = time_step.StepType.LAST
    leads_on = frames.step_type != last
    is_end = (frames.next_step_type == last)[leads_on]
    is_end[-1] = True
    terminals = is_end & (frames.discount == 0)[leads_on]
    return {
        "observations": frames.observation[leads_on],
        "actions": frames.action[leads_on],
        "rewards": frames.reward[leads_on],
        "terminals": terminals,
        "timeouts": is_end & ~terminals,
    }
