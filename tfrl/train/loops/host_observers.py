"""Observers that call a Python function at each step, in plain and compiled loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrl.drivers import observers

if TYPE_CHECKING:
    from tfrl.typing import types


def host_observer(function: types.Observer) -> observers.HostObserver:
    """Returns an observer that calls a Python function at each step.

    It works in the loops of `tfrl.train`, plain and compiled, and in all drivers. An
    exception of the function ends the run and reaches its caller unchanged.

    ```python
    rewards = []

    def record(frame):
        rewards.append(frame.reward)

    loop = train.OffPolicyLoop(
        environment, agent, replay_buffer, [train.host_observer(record)]
    )
    loop.run(1000)  # rewards has an array `[B]` of each step
    ```

    The function is called in the order of the steps, including the initial steps of an
    `OffPolicyLoop` and the boundaries between episodes. The call may come from another
    thread. Checkpoints do not save data that the function keeps. A `tf.Variable` or a
    TF metric takes less time. `train.sweep` refuses a host observer, because one
    program takes the steps of many runs together.

    Args:
      function: Takes a `Trajectory` of NumPy arrays `[B, ...]`, which it may keep. Its
        result is ignored. As one of a driver's `transition_observers` it takes
        `(time_step, action_step, next_time_step)` of arrays.

    Raises:
      TypeError: `function` cannot be called.
    """
    return observers.HostObserver(function)
