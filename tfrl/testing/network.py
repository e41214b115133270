"""`NetworkConformance`: the suite for networks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.networks import network as network_lib
from tfrl.specs import tensor_spec
from tfrl.testing.conformance import Conformance, check_like_spec, check_same, fail

_MID = 1


class NetworkConformance(Conformance):
    """Checks that a `Network` behaves as policies and agents expect.

    Implement `make_network`. The network that it returns must have an
    `input_tensor_spec`.

    Attributes:
      batch_sizes: The batch sizes to which the network is applied.
      has_unused_variables: Whether some trainable variables have no effect on the
        output, for example because only a part of the network is used.
      tolerance: The greatest difference between a row of a batch and the row alone.
    """

    batch_sizes: tuple[int, ...] = (1, 7)
    has_unused_variables: bool = False
    tolerance: float = 1e-5

    def make_network(self) -> network_lib.Network:
        """Returns a new network."""
        raise NotImplementedError(
            f"{type(self).__name__}.make_network: not written; return a new network "
            "from it."
        )

    def make_inputs(
        self, network: network_lib.Network, batch_size: int, seed: int = 0
    ) -> Any:
        """Returns a nest of random inputs `[batch_size, ...]`."""
        return sample_inputs(network.input_tensor_spec, batch_size, seed)

    def test_create_variables_returns_the_output_spec(self) -> None:
        """Checks that a second call returns the same spec and makes no variables."""
        network = self.make_network()
        spec = network.create_variables()
        number = len(network.variables)
        if network.create_variables() != spec or len(network.variables) != number:
            fail(
                "create_variables(), called twice",
                f"another spec, or {len(network.variables)} variables",
                f"the same spec and {number} variables",
                "make all layers in __init__ or build, not in call",
            )

    def test_outputs_and_states_are_batched(self) -> None:
        """Checks that outputs have a batch dimension, and states fit their spec."""
        network = self.make_network()
        for size in self.batch_sizes:
            output, state = self._apply(network, self.make_inputs(network, size))
            for leaf in tf.nest.flatten(_numbers(output)):
                if leaf.shape.rank == 0 or leaf.shape[0] != size:
                    fail(
                        f"the output for a batch of {size}",
                        f"shape {leaf.shape}",
                        f"({size}, ...)",
                        "keep the batch in front in call",
                    )
            check_like_spec(
                tf.nest.map_structure(lambda tensor: tensor.numpy(), state),
                network.state_spec,
                (size,),
                f"the state for a batch of {size}",
                "return the new state from call, and give its spec as state_spec",
            )

    def test_rows_do_not_depend_on_each_other(self) -> None:
        """Checks that a row gives the same output alone as in a batch."""
        network = self.make_network()
        size = self.batch_sizes[-1]
        inputs = self.make_inputs(network, size)
        together = tf.nest.flatten(_numbers(self._apply(network, inputs)[0]))
        for row in range(size):
            alone_inputs = tf.nest.map_structure(
                lambda tensor, row=row: tensor[row : row + 1], inputs
            )
            alone = tf.nest.flatten(_numbers(self._apply(network, alone_inputs)[0]))
            for one, other in zip(together, alone, strict=True):
                if not np.allclose(one[row], other[0], atol=self.tolerance):
                    fail(
                        f"row {row} of a batch of {size}",
                        f"{one[row].numpy()}",
                        f"{other[0].numpy()}, as alone",
                        "do not mix the rows, and leave batch statistics to "
                        "training=True",
                    )

    def test_it_is_the_same_at_every_call(self) -> None:
        """Checks that with `training=False` two calls have the same output."""
        network = self.make_network()
        inputs = self.make_inputs(network, self.batch_sizes[-1])
        one, other = (_numbers(self._apply(network, inputs)[0]) for _ in range(2))
        check_same(
            one,
            other,
            "the output of a second call",
            "as of the first",
            "leave dropout and batch statistics to training=True",
        )

    def test_gradients_reach_all_trainable_variables(self) -> None:
        """Checks that no gradient is None; skipped with `has_unused_variables`."""
        network = self.make_network()
        network.create_variables()
        inputs = self.make_inputs(network, self.batch_sizes[-1])
        with tf.GradientTape() as tape:
            numbers = tf.nest.flatten(_numbers(self._apply(network, inputs)[0]))
            floats = [n for n in numbers if n.dtype.is_floating]
            total = tf.add_n([tf.reduce_sum(n * n) for n in floats])
        variables = network.trainable_variables
        gradients = tape.gradient(total, variables)
        unused = [
            v.path if hasattr(v, "path") else v.name
            for v, g in zip(variables, gradients, strict=True)
            if g is None
        ]
        if unused and not self.has_unused_variables:
            fail(
                "trainable_variables",
                f"no gradient for {unused}",
                "one for each",
                "leave out layers that call does not use, use no operation without a "
                "gradient, or set has_unused_variables",
            )

    def test_a_copy_has_weights_of_its_own(self) -> None:
        """Checks that `copy()` has the same shapes and shares no variable."""
        network = self.make_network()
        copy = network.copy(name="Copy")
        for one in (network, copy):
            one.create_variables()
        shapes = [[tuple(v.shape) for v in n.variables] for n in (network, copy)]
        if shapes[0] != shapes[1]:
            fail(
                "copy().variables",
                f"shapes {shapes[1]}",
                f"{shapes[0]}",
                "pass everything that decides the layers through __init__",
            )
        shared = {id(v) for v in network.variables} & {id(v) for v in copy.variables}
        if shared:
            fail(
                "copy()",
                f"{len(shared)} variables shared with the original",
                "none",
                "make the layers inside of __init__, or copy those that are passed in",
            )

    def test_a_checkpoint_holds_it(self) -> None:
        """Checks that a network restored by `tf.train.Checkpoint` has equal outputs."""
        network, copy = self.make_network(), self.make_network()
        for one in (network, copy):
            one.create_variables()
        for number, variable in enumerate(copy.variables):
            variable.assign(tf.cast(tf.zeros_like(variable) + number, variable.dtype))
        with tempfile.TemporaryDirectory() as folder:
            path = tf.train.Checkpoint(network=network).write(str(Path(folder, "c")))
            tf.train.Checkpoint(network=copy).read(path).assert_consumed()
        inputs = self.make_inputs(network, self.batch_sizes[-1])
        check_same(
            _numbers(self._apply(network, inputs)[0]),
            _numbers(self._apply(copy, inputs)[0]),
            "the output after restoring",
            "as of the saved network",
            "keep every layer and variable as an attribute",
        )

    def test_it_traces_once(self) -> None:
        """Checks that a `tf.function` of the network is traced once for one shape."""
        network = self.make_network()
        network.create_variables()

        @tf.function(autograph=False)
        def apply(inputs: Any) -> Any:
            return _numbers(self._apply(network, inputs)[0])

        for seed in range(3):
            apply(self.make_inputs(network, self.batch_sizes[-1], seed))
        if apply.experimental_get_tracing_count() != 1:
            fail(
                "the network in a tf.function",
                f"{apply.experimental_get_tracing_count()} traces",
                "one",
                "make no new Python values in call",
            )

    def test_inputs_of_another_structure_are_refused(self) -> None:
        """Checks that inputs unlike `input_tensor_spec` raise an error."""
        network = self.make_network()
        inputs = self.make_inputs(network, 1)
        try:
            self._apply(network, (inputs, inputs))
        except (ValueError, TypeError):
            return
        fail(
            "inputs of another structure",
            "no error",
            "a ValueError",
            "pass input_tensor_spec to super().__init__",
        )

    def _apply(self, network: network_lib.Network, inputs: Any) -> tuple[Any, Any]:
        size = tf.nest.flatten(inputs)[0].shape[0]
        return network(
            inputs,
            step_type=tf.fill([size], _MID),
            network_state=network.get_initial_state(size),
            training=False,
        )


def sample_inputs(specs: Any, batch_size: int, seed: int) -> Any:
    """Returns a nest of random tensors without huge floats, `[batch_size, ...]`."""

    def tame(spec: tf.TensorSpec) -> tf.TensorSpec:
        if not spec.dtype.is_floating:
            return spec
        low, high = -1.0, 1.0
        if isinstance(spec, tensor_spec.BoundedTensorSpec):
            low = np.clip(spec.minimum, -1e3, 1e3)
            high = np.clip(spec.maximum, -1e3, 1e3)
        return tensor_spec.BoundedTensorSpec(
            spec.shape, spec.dtype, low, high, spec.name
        )

    return tensor_spec.sample_spec_nest(
        tf.nest.map_structure(tame, specs), seed=seed, outer_dims=(batch_size,)
    )


def _numbers(output: Any) -> Any:
    """Returns the output with each distribution replaced by its parameters."""
    from tfrl.distributions import utils

    def numbers(leaf: Any) -> Any:
        if tf.is_tensor(leaf):
            return leaf
        return utils.parameters_to_dict(utils.get_parameters(leaf), tensors_only=True)

    return tf.nest.map_structure(numbers, output)
