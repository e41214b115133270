"""The distributions of a saved policy: their tensors, and how to make them again.

A SavedModel that returned TFP's objects could be loaded only where TFP is. So it
returns the tensors of each distribution, by the names of the constructor's arguments; a
file beside it holds the classes and the other arguments, as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.distributions import utils as distribution_utils
from tfrl.distributions.utils import Params
from tfrl.specs import spec_json

DISTRIBUTIONS_JSON = "distributions.json"

_PACKAGES = ("tensorflow_probability", "tfrl")

# The distribution of a certain action, which is described without importing TFP.
CERTAIN = {
    "class": "tfrl.policies.acting.deterministic:DeterministicWithLogProb",
    "arguments": {"loc": {"tensor": None}},
}


def take_apart(nested_distribution: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Returns the tensors of distributions, and their descriptions.

    Args:
      nested_distribution: A nest of distributions.

    Returns:
      A nest like `nested_distribution`, with nested dictionaries of tensors by the
      names of arguments; and a JSON value for each distribution, which holds the class
      and the other arguments.

    Raises:
      TypeError: An argument is neither a number, a text, a dtype, a spec, an array, a
        tensor, another distribution or its like, nor a list of these.
    """
    params = [
        distribution_utils.get_parameters(one)
        for one in tf.nest.flatten(nested_distribution)
    ]
    tensors = [
        _tensors_in(distribution_utils.parameters_to_dict(one)) for one in params
    ]
    packed = tf.nest.pack_sequence_as(nested_distribution, tensors)
    return packed, [_encode(one) for one in params]


def put_together(
    action_spec: Any, tensors: Any, descriptions: Sequence[dict[str, Any]]
) -> Any:
    """Returns the nest of distributions that `take_apart` took apart.

    Args:
      action_spec: A nest with the structure of the actions.
      tensors: The tensors that `take_apart` returned.
      descriptions: The descriptions that it returned.

    Raises:
      ValueError: A class of a description is not one of a distribution or its like.
    """
    made = [
        distribution_utils.make_from_parameters(
            distribution_utils.merge_to_parameters_from_dict(_decode(one), arguments)
        )
        for one, arguments in zip(
            descriptions,
            tree.flatten_up_to(action_spec, tensors, check_types=False),
            strict=True,
        )
    ]
    return tf.nest.pack_sequence_as(action_spec, made)


def write(model_path: str, descriptions: Sequence[dict[str, Any]]) -> None:
    """Writes the descriptions of a policy's distributions, in the order of actions."""
    with tf.io.gfile.GFile(os.path.join(model_path, DISTRIBUTIONS_JSON), "w") as file:
        file.write(json.dumps(descriptions, indent=1))


def read(model_path: str) -> list[dict[str, Any]]:
    """Returns what `write` wrote.

    Raises:
      FileNotFoundError: There is no such file.
    """
    path = os.path.join(model_path, DISTRIBUTIONS_JSON)
    if not tf.io.gfile.exists(path):
        raise FileNotFoundError(
            f"distribution: found no {DISTRIBUTIONS_JSON} in {model_path}, expected "
            "the file that PolicySaver.save writes; save the policy again."
        )
    with tf.io.gfile.GFile(path) as file:
        return json.loads(file.read())


def _tensors_in(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _tensors_in(value) if isinstance(value, dict) else value
        for name, value in arguments.items()
        if isinstance(value, dict) or tf.is_tensor(value)
    }


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    if isinstance(value, Params):
        cls, arguments = value.type_, value.params
        return {
            "class": f"{cls.__module__}:{cls.__qualname__}",
            "arguments": {name: _encode(item) for name, item in arguments.items()},
        }
    if tf.is_tensor(value):
        return {"tensor": None}
    if isinstance(value, tf.DType):
        return {"dtype": value.name}
    if isinstance(value, tf.TensorSpec):
        return {"spec": spec_json.encode(value)}
    if isinstance(value, np.ndarray | np.generic):
        return {"array": np.asarray(value).tolist(), "dtype": value.dtype.name}
    raise TypeError(
        f"the distribution has an argument {value!r} of type {type(value).__name__}, "
        "expected numbers, texts, specs, tensors, or distributions and bijectors."
    )


def _decode(value: Any) -> Any:
    """Returns the argument that `_encode` encoded; None for a tensor."""
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "class" in value:
        arguments = {name: _decode(item) for name, item in value["arguments"].items()}
        return Params(_class_named(value["class"]), arguments)
    if "spec" in value:
        return spec_json.decode(value["spec"])
    if "array" in value:
        return np.array(value["array"], value["dtype"])
    return tf.as_dtype(value["dtype"]) if "dtype" in value else None


def _class_named(name: str) -> Any:
    module, _, qualname = name.partition(":")
    # A file imports nothing else: a program imports the module of its own class.
    is_known = module.partition(".")[0] in _PACKAGES
    found: Any = (
        importlib.import_module(module) if is_known else sys.modules.get(module)
    )
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and hasattr(found, "parameters")):
        raise ValueError(
            f"{DISTRIBUTIONS_JSON}: got {name!r}, expected the class of a distribution "
            "of TFP, or of your own in a module that is imported already."
        )
    return found
