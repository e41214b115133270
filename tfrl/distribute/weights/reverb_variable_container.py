"""Sends variables from a learner to actors through a replay server.

A table of size 1 holds the newest values:

```python
variables = {
    reverb_variable_container.POLICY_KEY: agent.collect_policy.variables(),
    reverb_variable_container.TRAIN_STEP_KEY: train_step,
}
table = replay_service.Table(
    reverb_variable_container.DEFAULT_TABLE,
    sampler=replay_service.selectors.Uniform(),
    remover=replay_service.selectors.Fifo(),
    rate_limiter=replay_service.rate_limiters.MinSize(1),
    max_size=1,
    signature=tf.nest.map_structure(
        lambda v: tf.TensorSpec(v.shape, v.dtype), variables
    ),
)
```
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl import replay_service
from tfrl.typing import types
from tfrl.utils import nest_utils
from tfrl.utils import variables as variables_lib

DEFAULT_TABLE = "variables"
# The usual names of the parts of the nest of variables.
TRAIN_STEP_KEY = "train_step"
POLICY_KEY = "policy_variables"


class ReverbVariableContainer:
    """Pushes nests of variables to tables of a server, and pulls them.

    A pull waits until there has been a push.
    """

    def __init__(
        self, server_address: str, table_names: Iterable[str] = (DEFAULT_TABLE,)
    ) -> None:
        """Connects to the server.

        Args:
          server_address: The server's address, as "host:port".
          table_names: The tables of variables, each of size 1 and with a signature.

        Raises:
          KeyError: The server has no such table.
          ValueError: A table's size is not 1.
          TypeError: A table has no signature.
        """
        self._client = replay_service.Client(server_address)
        infos = self._client.server_info()
        self._specs = {name: _signature(infos, name) for name in table_names}
        self._tf_client = replay_service.TFClient(server_address)

    def push(self, values: types.NestedTensor, table: str = DEFAULT_TABLE) -> None:
        """Puts values, a nest of tensors or variables, into a table.

        Args:
          values: A nest like the table's signature; lists may stand for tuples.
          table: The table's name.

        Raises:
          KeyError: The constructor was not given this table.
          ValueError: `values` does not have the signature's structure.
          tf.errors.InvalidArgumentError: A dtype or shape differs from the signature.
        """
        self._check(values, table)
        flat = [tf.convert_to_tensor(value) for value in tf.nest.flatten(values)]
        if tf.executing_eagerly():  # In a fraction of the time.
            try:
                self._client.insert([value.numpy() for value in flat], {table: 1.0})
            except ValueError as error:
                raise tf.errors.InvalidArgumentError(None, None, str(error)) from error
            return
        self._tf_client.insert(
            flat, tf.constant([table]), tf.constant([1.0], tf.float64)
        )

    def pull(self, table: str = DEFAULT_TABLE) -> types.NestedTensor:
        """Returns the newest values of a table, in the structure of its signature.

        Raises:
          KeyError: The constructor was not given this table.
        """
        dtypes = tf.nest.map_structure(lambda spec: spec.dtype, self._spec(table))
        return self._tf_client.sample(table, dtypes).data

    def update(
        self, variables: types.NestedVariable, table: str = DEFAULT_TABLE
    ) -> None:
        """Assigns the newest values of a table to variables.

        Args:
          variables: A nest like the table's signature; lists may stand for tuples.
          table: The table's name.

        Raises:
          KeyError: The constructor was not given this table.
          ValueError: `variables` does not have the signature's structure, or a shape
            or dtype differs.
        """
        self._check(variables, table)
        values = self._arrays(table) if tf.executing_eagerly() else self.pull(table)
        values = tf.nest.flatten(values)
        for variable, value in zip(tf.nest.flatten(variables), values, strict=True):
            variables_lib.as_tf_variable(variable).assign(value)

    def _arrays(self, table: str) -> list[np.ndarray]:
        """Returns the leaves of `pull` as arrays, in a fraction of its time."""
        (sample,) = self._client.sample(table, 1, emit_timesteps=False)
        return [steps[0] for steps in tf.nest.flatten(sample.data)]

    def _spec(self, table: str) -> Any:
        if table not in self._specs:
            raise KeyError(
                f"table: got {table!r}, but this container was made for "
                f"{sorted(self._specs)}; give it all tables as table_names."
            )
        return self._specs[table]

    def _check(self, nest: Any, table: str) -> None:
        nest_utils.assert_same_structure(nest, self._spec(table), check_types=False)


def _signature(infos: Any, table: str) -> Any:
    """Returns the signature of a table that can hold variables."""
    if table not in infos:
        raise KeyError(
            f"table_names: got {table!r}, but the server has {sorted(infos)}; give the "
            "names of its tables."
        )
    info = infos[table]
    if info.max_size != 1:
        raise ValueError(
            f"table {table!r}: expected a max_size of 1, for the newest values alone, "
            f"got {info.max_size}; make the table with max_size=1."
        )
    if not info.signature:
        raise TypeError(
            f"table {table!r}: expected a signature, the specs of the variables, got "
            "none; make the table with signature=..."
        )
    return info.signature
