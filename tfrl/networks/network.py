"""Network: a Keras layer with specs, recurrent state and copies.

`network(observation, step_type=None, network_state=(), training=False)` returns
`(output, network_state)`. Weights are Keras variables; `variable.value` is the
underlying `tf.Variable`, which TensorFlow's own functions need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
import tree

from tfrl.compilation import internals
from tfrl.networks import layer_utils
from tfrl.networks.construction import checks, recorded_layer, recurrence, seeding
from tfrl.savers import input_specs
from tfrl.specs import matching, tensor_spec
from tfrl.typing import types
from tfrl.utils import keras_versions
from tfrl.utils import variables as variables_lib

# The value of `tfrl.trajectories.time_step.StepType.FIRST`.
_FIRST = 0


class Network(internals.TracksMore, recorded_layer.Recorded, keras.layers.Layer):
    """Base class of networks.

    A subclass makes its layers in `__init__` and implements

    ```python
    def call(self, observation, step_type=None, network_state=(), training=False):
        ...
        return output, network_state
    ```

    `call` may omit `step_type` and `network_state` if it does not use them. The output
    is a nest of tensors or of TFP distributions. Inputs and state are checked against
    their specs; in a `tf.function` the checks run during tracing and cost nothing
    afterwards. Extra dictionary keys in the inputs are dropped.

    Layers may be made in `__init__` or `build`, not in `call`. `__init__` must not take
    `*args`, so that `copy` can repeat it.
    """

    built: bool
    _call_parameters: tuple[tuple[str, ...], bool]

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            recorded_layer.check_init(cls)
        cls._call_parameters = recorded_layer.parameters_of_call(cls.call)

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec | None = None,
        state_spec: types.NestedTensorSpec = (),
        name: str | None = None,
    ):
        """Creates the network.

        Args:
          input_tensor_spec: The nest of specs of the observations, without outer
            dimensions; or None, to pass them to `create_variables` later.
          state_spec: The nest of specs of the recurrent state; `()` if stateless.
          name: The layer's name.

        Raises:
          ValueError: If an observation has no elements.
        """
        # Keras must not cast the inputs, since their dtypes are checked: uint8 images
        # and float64 observations have to arrive unchanged.
        super().__init__(name=name, autocast=False)
        # The argument `mask` of `call` is a mask of actions. Without this line Keras
        # mistakes it for a Keras mask, and warns that the mask gets lost.
        self.supports_masking = True
        if input_tensor_spec is not None:
            input_tensor_spec = _as_input_spec(input_tensor_spec)
        self._set_untracked("_input_tensor_spec", input_tensor_spec)
        self._set_untracked("_state_spec", tensor_spec.from_spec(state_spec))
        self._set_untracked("_network_output_spec", None)
        self._set_untracked("_num_copies", 0)

    @property
    def input_tensor_spec(self) -> Any:
        """The nest of specs of the observations, without outer dimensions."""
        return self._input_tensor_spec

    @property
    def state_spec(self) -> Any:
        """The nest of specs of the recurrent state; `()` if stateless."""
        return self._state_spec

    @property
    def _least_outer_dims(self) -> int:
        """The smallest number of outer dimensions of inputs: 1 for `[B, ...]`."""
        return 1

    def compute_mask(self, inputs: Any, previous_mask: Any) -> None:
        """Returns None, since the outputs carry no Keras mask."""

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Applies the network to `inputs`, `[B, ...]` or `[B, T, ...]`.

        Returns:
          `(output, network_state)`.

        Raises:
          ValueError: If dtypes or inner shapes differ from the specs, or `call`
            returned something other than a pair.
          TypeError: If the network has a layer of Keras 2.
        """
        if self._input_tensor_spec is not None:
            inputs = checks.check_nest(
                inputs, self._input_tensor_spec, f"{self.name}: inputs"
            )
        arguments = self._call_arguments(inputs, args, kwargs)
        was_built = self.built
        if not was_built:
            shapes = tf.nest.map_structure(lambda x: getattr(x, "shape", None), inputs)
            with tf.init_scope():
                self.build(shapes)
            self.built = False  # It stays so if the check fails.
            layer_utils.check_no_keras_2(self)
            self.built = True
        results = super().__call__(**arguments)
        if not was_built:
            input_specs.remember(self, (inputs,))
        if not (isinstance(results, tuple | list) and len(results) == 2):
            raise ValueError(
                f"{self.name}: call returned {type(results).__name__}, expected a pair "
                "(output, network_state); return (output, ()) without a state."
            )
        outputs, state = results
        is_nested = tf.nest.is_nested(self._state_spec) and len(self._state_spec) > 0
        if checks.has_entries(self._state_spec) or (
            is_nested and checks.has_entries(state)
        ):
            state = checks.check_nest(
                state, self._state_spec, f"{self.name}: new state"
            )
        return outputs, state

    def _call_arguments(
        self, inputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """Names the arguments of `call`, as Keras refuses positional non-tensors."""
        names, takes_any = self._call_parameters
        if not takes_any:
            if "step_type" not in names:
                kwargs.pop("step_type", None)
            if "network_state" not in names and not checks.has_entries(
                self._state_spec
            ):
                kwargs.pop("network_state", None)
        if len(args) >= len(names):
            raise TypeError(
                f"{self.name}: got {1 + len(args)} positional arguments, expected at "
                f"most {len(names)}: {', '.join(names)}; pass the rest by name."
            )
        arguments = {**dict(zip(names, (inputs, *args), strict=False)), **kwargs}
        state = arguments.get("network_state")
        if checks.has_entries(state) and checks.has_entries(self._state_spec):
            arguments["network_state"] = checks.check_nest(
                state, self._state_spec, f"{self.name}: network_state"
            )
        return arguments

    def build(self, input_shape: Any = None) -> None:
        """Creates variables that depend on input shapes; sub-layers build themselves.

        A subclass that overrides this method may also create `tf.Variable`s, which
        `variables` includes.
        """
        del input_shape

    def create_variables(self, input_tensor_spec: Any = None, **kwargs: Any) -> Any:
        """Makes the variables by applying the network to one input of zeros.

        Args:
          input_tensor_spec: The specs of the observations; needed if the constructor
            did not get them.
          **kwargs: Further arguments of `call`, such as `training=True`.

        Returns:
          The nest of output specs without outer dimensions: a `tf.TensorSpec` for a
          tensor, a `DistributionSpecV2` for a distribution. Later calls return the
          same.

        Raises:
          ValueError: If the specs of the observations are not known, or one of them
            has no elements.
        """
        if self._network_output_spec is not None:
            return self._network_output_spec
        if self._input_tensor_spec is None:
            if input_tensor_spec is None:
                raise ValueError(
                    f"{self.name}: create_variables got no input_tensor_spec, expected "
                    "one here or in the constructor; pass "
                    "env.observation_spec(), say."
                )
            self._set_untracked("_input_tensor_spec", _as_input_spec(input_tensor_spec))
        with tf.init_scope():
            outer = [1] * self._least_outer_dims
            outputs, _ = self(
                _zeros(self._input_tensor_spec, outer),
                step_type=tf.fill(outer, _FIRST),
                network_state=self.get_initial_state(batch_size=1),
                **kwargs,
            )
        self._set_untracked(
            "_network_output_spec",
            tf.nest.map_structure(
                lambda output: _unbatched_spec(output, len(outer)), outputs
            ),
        )
        return self._network_output_spec

    @property
    def variables(self) -> list[Any]:
        """All variables, including the variables of sub-layers.

        Raises:
          ValueError: If the network is not built yet.
        """
        self._check_built("variables")
        found: dict[int, Any] = {}
        # Those of networks inside of this one are in both lists, and so are those of
        # Keras layers in modules.
        for variable in [*super().variables, *layer_utils.tf_variables(self)]:
            found.setdefault(id(variables_lib.as_tf_variable(variable)), variable)
        return list(found.values())

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables that training changes.

        Raises:
          ValueError: If the network is not built yet.
        """
        self._check_built("trainable_variables")
        # Keras selects the trainable variables from `variables`.
        return super().trainable_variables

    def _check_built(self, what: str) -> None:
        if not self.built:
            raise ValueError(
                f"{self.name}: {what} asked of a network that has not been built, "
                "expected a built one; call create_variables() or apply it first."
            )

    def also_tracked(self) -> dict[str, Any]:
        """Returns all variables, for checkpoints and SavedModels.

        Checkpoints and SavedModels would otherwise miss the variables in lists and
        dictionaries of Keras layers, in the network or deep inside a user's layer.
        """
        if not self.built and self._input_tensor_spec is not None:
            # Restoring would otherwise skip variables that do not exist yet.
            self.create_variables()
        if not self.built:
            return {}
        return {f"variable_{i}": v for i, v in enumerate(self.variables)}

    @property
    def layers(self) -> list[keras.layers.Layer]:
        """The layers directly inside the network."""
        return internals.flatten_layers(self, include_self=False, recursive=False)

    def get_layer(
        self, name: str | None = None, index: int | None = None
    ) -> keras.layers.Layer:
        """Returns one of `layers`, by name or by index.

        Raises:
          ValueError: If not exactly one of `name` and `index` is given, or there is no
            such layer.
        """
        if (name is None) == (index is None):
            raise ValueError(
                f"{self.name}: get_layer got name={name!r} and index={index!r}, "
                "expected exactly one of them; leave out the other."
            )
        found = [
            layer
            for i, layer in enumerate(self.layers)
            if i == index or layer.name == name
        ]
        if not found:
            raise ValueError(
                f"{self.name}: no layer with name={name!r}, index={index!r}; expected "
                f"one of {[layer.name for layer in self.layers]}; choose from those."
            )
        return found[0]

    def summary(
        self,
        line_length: int | None = None,
        positions: Sequence[float] | None = None,
        print_fn: Any = None,
    ) -> None:
        """Prints the layers and the shapes of their variables.

        Args:
          line_length: The width of the table.
          positions: The end of each column, as fractions of the width or in characters.
          print_fn: The function that prints a line; by default `print`.

        Raises:
          ValueError: If the network is not built yet.
        """
        self._check_built("summary")
        layer_utils.print_summary(self, line_length, positions, print_fn)

    def copy(self, **kwargs: Any) -> Any:
        """Makes a new network with this one's constructor arguments, except `kwargs`.

        Weights are not copied. Layers of the network that were arguments are copied,
        unless `kwargs` replaces them. A copy of a seeded network gets a new seed,
        derived from the network's seed, so that twin critics differ from each other,
        but are the same in every run. Pass `seed` to choose the seed of the copy.

        Raises:
          TypeError: If the constructor does not take one of `kwargs`.
        """
        recorded_layer.check_taken(type(self), kwargs)
        copied = {
            name: tree.map_structure(seeding.copy_layer, layers)
            for name, layers in self._layer_arguments().items()
            if name not in kwargs
        }
        arguments = {**self._arguments, **copied, **kwargs}
        seed = self._arguments.get("seed")
        if isinstance(seed, int) and "seed" not in kwargs:
            self._set_untracked("_num_copies", self._num_copies + 1)
            stream = seeding.SeedStream(seed)
            seeds = [stream() for _ in range(self._num_copies)]
            arguments["seed"] = seeding.SeedStream(seeds[-1] + 1)()
        return type(self)(**arguments)

    def _layer_arguments(self) -> dict[str, Any]:
        """Returns the constructor's arguments that are layers of this network.

        Each is a layer or a nest of layers, which `copy` copies.
        """
        return {}

    def get_initial_state(self, batch_size: Any = None) -> Any:
        """Returns a state of zeros `[batch_size, ...]`; unbatched for None."""
        return self._get_initial_state(batch_size)

    def _get_initial_state(self, batch_size: Any) -> Any:
        return tf.nest.map_structure(
            lambda spec: tf.zeros(
                [*([] if batch_size is None else [batch_size]), *spec.shape], spec.dtype
            ),
            self._state_spec,
        )


def _as_input_spec(input_tensor_spec: Any) -> Any:
    specs = tensor_spec.from_spec(input_tensor_spec)
    matching.check_not_empty(specs, "input_tensor_spec")
    return specs


class DistributionNetwork(Network):
    """Base class of networks whose output is a nest of distributions."""

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        state_spec: types.NestedTensorSpec,
        output_spec: types.NestedTensorSpec,
        name: str | None,
    ):
        """Creates the network.

        Args:
          input_tensor_spec: The nest of specs of the inputs.
          state_spec: The nest of specs of the state; `()` for a network without a
            state.
          output_spec: The nest of specs of the distributions.
          name: The name of the network.
        """
        super().__init__(
            input_tensor_spec=input_tensor_spec, state_spec=state_spec, name=name
        )
        self._set_untracked("_output_spec", output_spec)

    @property
    def output_spec(self) -> Any:
        """The nest of specs of the distributions."""
        return self._output_spec


def create_variables(module: Any, input_spec: Any = None, **kwargs: Any) -> Any:
    """Makes the variables of a Network or Keras layer; returns its output specs.

    Args:
      module: A Network, or a stateless Keras layer or model.
      input_spec: The specs of the inputs, without outer dimensions.
      **kwargs: Further arguments of the call, such as `training=True`.

    Raises:
      ValueError: If the input specs are not known.
    """
    if isinstance(module, Network):
        return module.create_variables(input_spec, **kwargs)
    return as_network(module).create_variables(input_spec, **kwargs)


def get_state_spec(layer: keras.layers.Layer) -> Any:
    """Returns the state spec of a Network or a recurrent Keras cell; `()` if stateless.

    Raises:
      TypeError: If `layer` is a recurrent Keras layer.
    """
    if isinstance(layer, Network):
        return layer.state_spec
    return recurrence.state_spec(layer) if recurrence.is_recurrent(layer) else ()


def as_network(layer: Any, input_spec: Any = None) -> Network:
    """Returns a Network unchanged, and wraps a Keras layer, a model or a Sonnet module.

    What is wrapped is not copied, so the Network shares its weights.

    Raises:
      TypeError: If `layer` is something else.
    """
    from tfrl.networks import module_network, sequential

    if isinstance(layer, Network):
        return layer
    keras_versions.check(layer, "network")  # Layers of Keras 2 are modules, too.
    if module_network.is_module(layer):
        return module_network.ModuleNetwork(layer, input_spec)
    if not isinstance(layer, keras.layers.Layer):
        raise TypeError(
            f"network: got {layer!r}, expected all networks to be a Network, another "
            "keras Layer or a Sonnet module; wrap a function in "
            "networks.Sequential([function])."
        )
    return sequential.Sequential([layer], input_spec=input_spec)


def _zeros(spec: Any, outer: list[int]) -> Any:
    """Returns an input of zeros, `[*outer, ...]`; unknown dimensions get size 1."""

    def zeros(leaf: Any) -> tf.Tensor:
        dense = tf.zeros(
            [*outer, *(1 if d is None else d for d in leaf.shape)], leaf.dtype
        )
        is_sparse = isinstance(leaf, tf.SparseTensorSpec)
        return tf.sparse.from_dense(dense) if is_sparse else dense

    return tf.nest.map_structure(zeros, spec)


def _unbatched_spec(output: Any, num_outer_dims: int) -> Any:
    if isinstance(output, tf.Tensor):
        return tf.TensorSpec(output.shape[num_outer_dims:], output.dtype)
    from tfrl.distributions import utils as distribution_utils

    return distribution_utils.spec_from_distribution(output, num_outer_dims)
