"""Network: a Keras layer with specs, recurrent state and copies.

`network(observation, step_type=None, network_state=(), training=False)` returns
`(output, network_state)`. Weights are Keras variables: `variable.value` is the
`tf.Variable` behind one, where TensorFlow itself has to have it.
"""

from __future__ import annotations

import inspect
from typing import Any

import keras
import tensorflow as tf
import tree

from tfrl.networks import utils
from tfrl.specs import tensor_spec
from tfrl.utils import nest_utils

# FIRST, as in tfrl.trajectories.time_step.StepType.
_FIRST = 0


class Network(keras.layers.Layer):
    """Base class of networks.

    A subclass makes its layers in `__init__` and writes

    ```python
    def call(self, observation, step_type=None, network_state=(), training=False):
        ...
        return output, network_state
    ```

    where `step_type` and `network_state` may be left out of the signature if it does
    not use them. The output is a nest of tensors or of TFP distributions. Inputs and
    state are checked against their specs; in a `tf.function` that happens while it is
    traced and costs nothing afterwards. Extra dictionary keys in the inputs are pruned.

    Layers may be made in `__init__` or `build`, not in `call`. `__init__` must not take
    `*args`, so that `copy` can repeat it.
    """

    _saved_kwargs: dict[str, Any]

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        parameters = inspect.signature(cls.__init__).parameters.values()
        if "__init__" in vars(cls) and any(
            p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters
        ):
            raise RuntimeError(
                f"{cls.__name__}.__init__ accepts *args, expected named arguments "
                "alone, since copy() repeats the call by name; name them."
            )

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        network = super().__new__(cls, *args, **kwargs)
        # Past Keras' attribute tracking: the arguments are not part of the network.
        object.__setattr__(network, "_saved_kwargs", _bind_init(cls, args, kwargs))
        return network

    def __init__(
        self,
        input_tensor_spec: Any = None,
        state_spec: Any = (),
        name: str | None = None,
    ):
        """Sets up a network.

        Args:
          input_tensor_spec: The nest of specs of the observations, without outer
            dimensions. May come later, with `create_variables`.
          state_spec: The nest of specs of the recurrent state; `()` is none.
          name: The layer's name.
        """
        # Casting is the network's own business: uint8 images and float64
        # observations have to arrive as they are to be checked.
        super().__init__(name=name, autocast=False)
        if input_tensor_spec is not None:
            input_tensor_spec = tensor_spec.from_spec(input_tensor_spec)
        self._keep("_input_tensor_spec", input_tensor_spec)
        self._keep("_state_spec", tensor_spec.from_spec(state_spec))
        self._keep("_network_output_spec", None)
        self._keep("_num_copies", 0)

    def _keep(self, name: str, value: Any) -> None:
        """Stores a nest as it is, which Keras would wrap to track its entries."""
        object.__setattr__(self, name, value)

    @property
    def input_tensor_spec(self) -> Any:
        """The nest of specs of the observations, without outer dimensions."""
        return self._input_tensor_spec

    @property
    def state_spec(self) -> Any:
        """The nest of specs of the recurrent state; `()` if there is none."""
        return self._state_spec

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Applies the network to `inputs`, `[B, ...]` or `[B, T, ...]`.

        Returns:
          `(output, network_state)`.

        Raises:
          ValueError: If dtypes or inner shapes differ from the specs, or `call`
            returned something other than a pair.
        """
        if self._input_tensor_spec is not None:
            inputs = _check_nest(
                inputs, self._input_tensor_spec, f"{self.name}: inputs"
            )
        arguments = self._call_arguments(inputs, args, kwargs)
        if not self.built:
            shapes = tf.nest.map_structure(lambda x: getattr(x, "shape", None), inputs)
            with tf.init_scope():
                self.build(shapes)
        results = super().__call__(**arguments)
        if not (isinstance(results, tuple | list) and len(results) == 2):
            raise ValueError(
                f"{self.name}: call returned {type(results).__name__}, expected a pair "
                "(output, network_state); return (output, ()) without a state."
            )
        outputs, state = results
        if has_entries(self._state_spec):
            state = _check_nest(state, self._state_spec, f"{self.name}: new state")
        return outputs, state

    def _call_arguments(
        self, inputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """All arguments of `call` by name: Keras refuses positional non-tensors."""
        signature = inspect.signature(self.call)
        kinds = {p.kind for p in signature.parameters.values()}
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            for name in ("step_type", "network_state"):
                unused = name not in signature.parameters
                if unused and (name == "step_type" or not has_entries(self.state_spec)):
                    kwargs.pop(name, None)
        bound = signature.bind(inputs, *args, **kwargs).arguments
        arguments = dict(bound)
        for name, parameter in signature.parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                arguments.update(arguments.pop(name, {}))
        state = arguments.get("network_state")
        if has_entries(state) and has_entries(self._state_spec):
            arguments["network_state"] = _check_nest(
                state, self._state_spec, f"{self.name}: network_state"
            )
        return arguments

    def build(self, input_shape: Any = None) -> None:
        """Makes what depends on the nest of input shapes; sub-layers build themselves.

        A subclass that overrides it may create `tf.Variable`s: they count among
        `variables`.
        """
        del input_shape

    def create_variables(self, input_tensor_spec: Any = None, **kwargs: Any) -> Any:
        """Makes the variables by applying the network to one input of zeros.

        Args:
          input_tensor_spec: The specs of the observations, if the constructor was not
            given them.
          **kwargs: Further arguments of `call`, `training=True` say.

        Returns:
          The nest of output specs without outer dimensions: a `tf.TensorSpec` for a
          tensor, a `DistributionSpecV2` for a distribution. Later calls return the
          same.

        Raises:
          ValueError: If the specs of the observations are not known.
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
            self._keep("_input_tensor_spec", tensor_spec.from_spec(input_tensor_spec))
        with tf.init_scope():
            outputs, _ = self(
                _zeros(self._input_tensor_spec),
                step_type=tf.fill([1], _FIRST),
                network_state=self.get_initial_state(batch_size=1),
                **kwargs,
            )
        self._keep(
            "_network_output_spec", tf.nest.map_structure(_unbatched_spec, outputs)
        )
        return self._network_output_spec

    @property
    def variables(self) -> list[Any]:
        """All variables, those of sub-layers included.

        Raises:
          ValueError: If the network is not built yet.
        """
        self._check_built("variables")
        return [*super().variables, *self._tf_variables()]

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables that training changes.

        Raises:
          ValueError: If the network is not built yet.
        """
        self._check_built("trainable_variables")
        own = [v for v in self._tf_variables() if v.trainable and self.trainable]
        return [*super().trainable_variables, *own]

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The variables that training leaves to the forward pass."""
        trainable = {id(v) for v in self.trainable_variables}
        return [v for v in self.variables if id(v) not in trainable]

    def _check_built(self, what: str) -> None:
        if not self.built:
            raise ValueError(
                f"{self.name}: {what} asked of a network that has not been built, "
                "expected a built one; call create_variables() or apply it first."
            )

    def _tf_variables(self) -> list[tf.Variable]:
        """Plain `tf.Variable`s set as attributes, which Keras does not count."""
        found: dict[int, tf.Variable] = {}
        for layer in self._flatten_layers():
            for value in vars(layer).values():
                entries = value if isinstance(value, list | tuple) else [value]
                found.update((id(v), v) for v in entries if isinstance(v, tf.Variable))
        return list(found.values())

    @property
    def layers(self) -> list[keras.layers.Layer]:
        """The layers directly inside the network."""
        return list(self._flatten_layers(include_self=False, recursive=False))

    def get_layer(
        self, name: str | None = None, index: int | None = None
    ) -> keras.layers.Layer:
        """Returns one of `layers`, by name or by index.

        Raises:
          ValueError: If not exactly one of the two is given, or there is no such layer.
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

    def summary(self, print_fn: Any = print) -> None:
        """Prints the layers and the shapes of their variables.

        Raises:
          ValueError: If the network is not built yet.
        """
        self._check_built("summary")
        print_fn(f"{type(self).__name__} {self.name!r}")
        for variable in self.variables:
            path = getattr(variable, "path", variable.name)
            print_fn(f"  {path}  {tuple(variable.shape)}  {variable.dtype}")
        total = sum(int(tf.size(v)) for v in self.trainable_variables)
        print_fn(f"  trainable parameters: {total:,}")

    def copy(self, **kwargs: Any) -> Any:
        """Makes a new network with the constructor's arguments, `kwargs` overriding.

        Weights are not copied. A copy of a seeded network gets a seed derived from it,
        so that twin critics start apart, the same way in every run; pass `seed` to
        choose.
        """
        arguments = {**self._saved_kwargs, **kwargs}
        seed = self._saved_kwargs.get("seed")
        if isinstance(seed, int) and "seed" not in kwargs:
            self._keep("_num_copies", self._num_copies + 1)
            stream = utils.SeedStream(seed)
            seeds = [stream() for _ in range(self._num_copies)]
            arguments["seed"] = utils.SeedStream(seeds[-1] + 1)()
        return type(self)(**arguments)

    def get_initial_state(self, batch_size: Any = None) -> Any:
        """Returns the state to start from: zeros, `[B, ...]`, or unbatched for None."""
        return self._get_initial_state(batch_size)

    def _get_initial_state(self, batch_size: Any) -> Any:
        return tf.nest.map_structure(
            lambda spec: tf.zeros(
                [*([] if batch_size is None else [batch_size]), *spec.shape], spec.dtype
            ),
            self._state_spec,
        )


class DistributionNetwork(Network):
    """Base class of networks whose output is a nest of distributions."""

    def __init__(
        self,
        input_tensor_spec: Any,
        state_spec: Any,
        output_spec: Any,
        name: str | None,
    ):
        super().__init__(
            input_tensor_spec=input_tensor_spec, state_spec=state_spec, name=name
        )
        self._keep("_output_spec", output_spec)

    @property
    def output_spec(self) -> Any:
        """The nest of specs of the distributions."""
        return self._output_spec


def create_variables(module: Any, input_spec: Any = None, **kwargs: Any) -> Any:
    """Makes the variables of a Network or Keras layer; returns its output specs.

    Args:
      module: A Network, or a stateless Keras layer or model.
      input_spec: The specs of the inputs, without outer dimensions.
      **kwargs: Further arguments of the call, `training=True` say.

    Raises:
      ValueError: If the input specs are not known.
    """
    if isinstance(module, Network):
        return module.create_variables(input_spec, **kwargs)
    return as_network(module).create_variables(input_spec, **kwargs)


def get_state_spec(layer: keras.layers.Layer) -> Any:
    """Returns the state spec of a Network; `()` for a Keras layer without state.

    Raises:
      TypeError: If `layer` is a recurrent Keras layer or cell.
    """
    if isinstance(layer, Network):
        return layer.state_spec
    if hasattr(layer, "state_size"):
        raise TypeError(
            f"{layer.name}: got the recurrent Keras layer {type(layer).__name__}, "
            "expected a layer without state; use a recurrent Network."
        )
    return ()


def as_network(layer: Any, input_spec: Any = None) -> Network:
    """Returns a Network as it is, and a Keras layer or model wrapped in `Sequential`.

    The wrapped layer is used itself, not copied, so it shares its weights.

    Raises:
      TypeError: If `layer` is neither.
    """
    if isinstance(layer, Network):
        return layer
    from tfrl.networks import sequential

    return sequential.Sequential([layer], input_spec=input_spec)


def _bind_init(cls: type, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments of a constructor call by name."""
    try:
        bound = inspect.signature(cls).bind(*args, **kwargs)
    except TypeError:
        # A wrong call, which __init__ will refuse in its own words.
        return {}
    arguments = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            arguments.update(arguments.pop(name, {}))
    return arguments


def has_entries(nest: Any) -> bool:
    """Whether a nest, of state or of specs, holds anything; `()` and None do not."""
    return nest is not None and bool(tf.nest.flatten(nest))


def _zeros(spec: Any) -> Any:
    """One batched input of zeros; unknown dimensions get size 1."""

    def zeros(leaf: Any) -> tf.Tensor:
        return tf.zeros([1, *(1 if d is None else d for d in leaf.shape)], leaf.dtype)

    return tf.nest.map_structure(zeros, spec)


def _unbatched_spec(output: Any) -> Any:
    if isinstance(output, tf.Tensor):
        return tf.TensorSpec(output.shape[1:], output.dtype)
    from tfrl.distributions import utils as distribution_utils

    return distribution_utils.spec_from_distribution(output, num_outer_dims=1)


def _check_nest(tensors: Any, specs: Any, where: str) -> Any:
    """Checks structure, dtypes and inner shapes; returns `tensors`, pruned if need be.

    Raises:
      ValueError: With the path of what differs.
    """
    try:
        tf.nest.assert_same_structure(tensors, specs, check_types=False)
    except (ValueError, TypeError):
        tensors = nest_utils.prune_extra_keys(specs, tensors)
    flat_tensors = tf.nest.flatten(tensors)
    for i, (tensor, spec) in enumerate(
        zip(flat_tensors, tf.nest.flatten(specs), strict=True)
    ):
        shape = tf.TensorShape(tensor.shape)
        inner_rank = spec.shape.rank
        fits = (
            shape.rank is None
            or inner_rank is None
            or (
                shape.rank >= inner_rank
                and shape[shape.rank - inner_rank :].is_compatible_with(spec.shape)
            )
        )
        if not fits or tf.as_dtype(tensor.dtype) != spec.dtype:
            path = "/".join(map(str, tree.flatten_with_path(specs)[i][0]))
            raise ValueError(
                f"{where}{f' at {path!r}' if path else ''}: got dtype "
                f"{tf.as_dtype(tensor.dtype).name} and shape {shape}, expected dtype "
                f"{spec.dtype.name} and inner shape {spec.shape} behind the outer "
                "dimensions; cast or reshape it, or build the network for it."
            )
    return tensors
