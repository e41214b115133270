"""Detects lost weights of an agent, which hold NaN or infinity."""

from __future__ import annotations

import math

import tensorflow as tf

from tfrl import garbage
from tfrl.agents import tf_agent
from tfrl.compilation import fast_function
from tfrl.savers import finite


class LostWeights:
    """Looks for lost weights after a compiled call of a loop.

    XLA has no assertions that could prevent an update with gradients that are not
    finite.
    """

    def __init__(self, agent: tf_agent.TFAgent) -> None:
        """Records the variables that are finite now; some agents have infinite numbers.

        Args:
          agent: The agent.
        """
        self._agent = agent
        self._watched = [v for v in agent.variables() if finite.is_finite(v)]
        # A graph of its own: XLA would compile a test for each shape of a variable.
        self._find = fast_function.fast_function(self.are_finite, autograph=False)

    def are_finite(self) -> tf.Tensor:
        """Returns whether the variables are still finite, a bool scalar."""
        return finite.all_finite(self._watched)

    @garbage.uncollected()
    def check(self, loss: float, num_iterations: int) -> None:
        """Raises an error if the loss of a call, or a weight after it, is not finite.

        Args:
          loss: The sum or the mean of the losses.
          num_iterations: The number of iterations in the call.

        Raises:
          tf.errors.InvalidArgumentError: The message says whether the weights are
            finite.
        """
        if math.isfinite(loss) and self._find():
            return
        held = self._agent.variables()
        lost = sum(not finite.is_finite(variable) for variable in held)
        state = (
            f"{lost} of the agent's {len(held)} variables hold NaN or infinity now, so "
            "the weights are lost"
            if lost
            else "the weights are still finite, but were trained with that loss"
        )
        raise tf.errors.InvalidArgumentError(
            None,
            None,
            f"experience: a {type(self._agent).__name__} loss in the last "
            f"{num_iterations} iterations was not finite, or its gradients were not, "
            f"expected numbers; {state}. Look for NaN, infinite or huge observations "
            "and rewards, or lower the learning rate, and resume from a checkpoint; "
            "jit_compile=False stops before the update.",
        )
