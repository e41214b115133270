"""`VariableClient`: brings the weights of a learner to an actor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent import futures
from typing import Any

import tree

from tfrl.acme import core


class VariableClient:
    """Copies the variables of a source, such as a learner, to local variables.

    >>> import numpy as np
    >>> import tensorflow as tf
    >>> class Source(core.VariableSource):
    ...     def get_variables(self, names): return [[np.ones(2)] for _ in names]
    >>> weights = tf.Variable([0.0, 0.0])
    >>> VariableClient(Source(), {"policy": [weights]}).update_and_wait()
    >>> weights.numpy().tolist()
    [1.0, 1.0]
    """

    def __init__(
        self,
        client: core.VariableSource,
        variables: Mapping[str, Sequence[Any]],
        update_period: int = 1,
    ):
        """Creates the client; nothing is fetched yet.

        Args:
          client: The source, any object with a `get_variables` method.
          variables: The variables of TensorFlow or Keras to write to, by the source's
            names.
          update_period: The number of calls of `update` for each request.

        Raises:
          ValueError: If `update_period` is not positive.
        """
        if update_period < 1:
            raise ValueError(
                f"update_period: got {update_period}, expected 1 or more; 1 fetches "
                "variables at each update."
            )
        self._client = client
        self._names = list(variables)
        self._variables = [list(group) for group in variables.values()]
        self._update_period = update_period
        self._num_calls = 0
        # One thread, so that requests arrive in their order.
        self._executor = futures.ThreadPoolExecutor(max_workers=1)
        self._request: futures.Future[Any] | None = None

    def update(self, wait: bool = False) -> None:
        """Counts a call, and copies or requests variables if it is time.

        Args:
          wait: Whether to fetch the variables at once if it is time. Otherwise a thread
            fetches them, and a later call copies them.

        Raises:
          ValueError: If the source returned another number of variables.
        """
        self._num_calls += 1
        is_due = self._num_calls >= self._update_period
        if is_due and wait:
            self._request = None
            self._num_calls = 0
            self.update_and_wait()
            return
        if is_due and self._request is None:
            self._request = self._executor.submit(
                self._client.get_variables, self._names
            )
            self._num_calls = 0
        if self._request is not None and self._request.done():
            request, self._request = self._request, None
            self._copy(request.result())

    def update_and_wait(self) -> None:
        """Fetches the variables and copies them.

        Raises:
          ValueError: If the source returned another number of variables.
        """
        self._copy(self._client.get_variables(self._names))

    def _copy(self, groups: Sequence[Any]) -> None:
        values = tree.flatten(groups)
        variables = [variable for group in self._variables for variable in group]
        if len(values) != len(variables):
            raise ValueError(
                f"variables: the source returned {len(values)} arrays for "
                f"{', '.join(self._names)}, expected {len(variables)}; create the "
                "variables of the same networks on both sides."
            )
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
