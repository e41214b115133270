"""Type aliases that annotations across the library share.

Classes are named by strings, so that importing this module imports neither TensorFlow
nor any other package of the library. TensorFlow ships no type annotations, so a type
checker treats its classes as `Any`; the names help the reader.
"""

# Strings cannot be joined with `|` at run time.
# ruff: noqa: UP007, UP045

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Protocol, TypeVar, Union

import numpy as np

if TYPE_CHECKING:
    import gymnasium
    import keras
    import tensorflow as tf
    import tensorflow_probability as tfp

    from tfrl import replay_service
    from tfrl.environments import py_environment, tf_environment
    from tfrl.networks import network
    from tfrl.policies import py_policy, tf_policy
    from tfrl.specs import array_spec, tensor_spec
    from tfrl.trajectories import policy_step, time_step, trajectory

# A nest is a leaf, or a list, tuple or mapping of nests.
Tnest = TypeVar("Tnest")
Trecursive = TypeVar("Trecursive")
Nested = Union[Tnest, Iterable[Trecursive], Mapping[str, Trecursive]]

# Values.
Tensor = Union["tf.Tensor", "tf.SparseTensor", "tf.RaggedTensor"]
Variable = Union["tf.Variable", "keras.Variable"]
Array = Union[np.ndarray, np.generic, int, float, str, bool, "tf.Tensor"]
TensorOrArray = Union[Tensor, Array]
# The values that `tf.convert_to_tensor` takes.
TensorLike = Union[TensorOrArray, Variable, Sequence["TensorLike"]]
Distribution = Union["tfp.distributions.Distribution"]


class HasDtype(Protocol):
    """A tensor, array, NumPy number, variable, distribution or spec."""

    @property
    def dtype(self) -> Any:
        """The data type of the values."""


# The values that a field such as a reward can have. Type checkers refuse strings here.
# They would accept strings if `tf.Tensor` were named, since `tf.Tensor` can be `Any` to
# them.
NestedValue = Union[HasDtype, float, list[Any], tuple[Any, ...], Mapping[Any, Any]]

Int = Union[int, np.int16, np.int32, np.int64, Tensor, Array]
Bool = Union[bool, np.bool_, Tensor, Array]
Float = Union[float, np.float16, np.float32, np.float64, Tensor, Array]
FloatOrReturningFloat = Union[Float, Callable[[], Float]]
# The values that `tfrl.utils.optimization.schedules` reads.
FloatOrSchedule = Union[
    FloatOrReturningFloat, "keras.optimizers.schedules.LearningRateSchedule"
]
Shape = Union[TensorOrArray, Sequence[Optional[int]], "tf.TensorShape"]
ShapeSequence = Sequence[Optional[int]]
Seed = Union[int, Sequence[int], Tensor, Array]

# Specs.
ArraySpec = Union["array_spec.ArraySpec"]
BoundedTensorSpec = Union["tensor_spec.BoundedTensorSpec"]
DistributionSpecV2 = Any
TensorSpec = Union[
    "tf.TypeSpec", "tf.TensorSpec", "tf.RaggedTensorSpec", "tf.SparseTensorSpec"
]
Spec = Union[TensorSpec, ArraySpec]
SpecTensorOrArray = Union[Spec, Tensor, Array]

# Classes.
Network = Union["network.Network"]
Layer = Union["keras.layers.Layer"]
Optimizer = Union["keras.optimizers.Optimizer", "tf.compat.v1.train.Optimizer"]
LookupLayer = Union["keras.layers.IntegerLookup", "keras.layers.StringLookup"]
TimeStep = Union["time_step.TimeStep"]
# The results of environments. Rewards and observations may be nests of any structure.
ArrayTimeStep = Union["time_step.TimeStep[np.ndarray, Any, np.ndarray]"]
TensorTimeStep = Union["time_step.TimeStep[tf.Tensor, Any, tf.Tensor]"]
PolicyStep = Union["policy_step.PolicyStep"]
Trajectory = Union["trajectory.Trajectory"]
PyEnv = Union["py_environment.PyEnvironment"]
TFEnv = Union["tf_environment.TFEnvironment"]
PyPolicy = Union["py_policy.PyPolicy"]
TFPolicy = Union["tf_policy.TFPolicy"]
GymEnv = Union["gymnasium.Env"]
GymnasiumEnv = GymEnv
ReverbServer = Union["replay_service.Server"]
ReverbTable = Union["replay_service.Table"]
ReverbClient = Union["replay_service.Client"]
ReverbTFClient = Union["replay_service.TFClient"]
ReverbSampleInfo = Union["replay_service.SampleInfo"]
ReverbReplaySample = Union["replay_service.ReplaySample"]

# Nests of the types above.
NestedTensor = Nested[Tensor, "NestedTensor"]
NestedVariable = Nested[Variable, "NestedVariable"]
NestedArray = Nested[Array, "NestedArray"]
NestedDistribution = Nested[Distribution, "NestedDistribution"]
NestedTensorSpec = Nested[TensorSpec, "NestedTensorSpec"]
NestedBoundedTensorSpec = Nested[BoundedTensorSpec, "NestedBoundedTensorSpec"]
NestedArraySpec = Nested[ArraySpec, "NestedArraySpec"]
NestedLayer = Nested[Layer, "NestedLayer"]
NestedNetwork = Nested[Network, "NestedNetwork"]
NestedSpec = Union[NestedTensorSpec, NestedArraySpec]
NestedTensorOrArray = Union[NestedTensor, NestedArray]
NestedSpecTensorOrArray = Union[NestedSpec, NestedTensor, NestedArray]

# Functions.
Splitter = Optional[
    Callable[
        [NestedSpecTensorOrArray],
        tuple[NestedSpecTensorOrArray, NestedSpecTensorOrArray],
    ]
]
GymEnvWrapper = Callable[[GymEnv], GymEnv]
GymnasiumEnvWrapper = GymEnvWrapper
PyEnvWrapper = Callable[[PyEnv], PyEnv]
# Nothing uses the value that an observer returns.
Observer = Callable[[Trajectory], object]
ComparatorFn = Callable[[Float, Float], Bool]
LossFn = Callable[..., Tensor]
