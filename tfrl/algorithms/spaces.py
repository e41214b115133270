"""Fits observations and actions to an algorithm's networks, or says why they do not.

These are the kinds of algorithms, by the actions that they choose:

- "any": discrete or continuous actions, in any nest.
- "discrete": one choice. `fit_actions` numbers the combinations of several.
- "continuous": bounded floats, in any nest.
- "vector": one vector of bounded floats. `fit_actions` joins the parts of others.
- "discrete or continuous" and "discrete or vector": one of both, by the environment.

For observations see `networks.observation_encoder`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import tree

from tfrl import environments, networks
from tfrl.environments.observation_parts import CRITIC as CRITIC
from tfrl.environments.observation_parts import MASK as MASK
from tfrl.specs import array_spec

Kind = Literal[
    "any",
    "discrete",
    "continuous",
    "vector",
    "discrete or continuous",
    "discrete or vector",
]

# The largest number of combinations of discrete actions that an algorithm with an
# output for each action learns.
MAX_ACTIONS = 1024


def observation_network(
    observation_spec: Any,
    *,
    conv_layer_params: Any = None,
    encoder: Any = None,
    dtype: Any = "float32",
    seed: int | None = None,
) -> networks.Network | None:
    """Makes an encoder for networks that take only vectors of floats.

    It is for `networks.Sequential` and for `networks.CriticMultiplexer`.

    Args:
      observation_spec: The nest of specs of one observation.
      conv_layer_params: See `networks.observation_encoder`.
      encoder: The same.
      dtype: The dtype of the layers, or a Keras dtype policy.
      seed: Seeds the convolutions; None follows `tf.random.set_seed`.

    Returns:
      A network from observations to vectors `[B, n]`; None if all observations are
      floats and none is an image, since these networks join such observations
      themselves.

    Raises:
      ValueError: See `networks.observation_encoder`.
    """
    arguments = networks.observation_encoder(
        observation_spec,
        conv_layer_params=conv_layer_params,
        encoder=encoder,
        dtype=dtype,
    )
    is_floating = all(s.dtype.is_floating for s in tree.flatten(observation_spec))
    if (
        encoder is None
        and is_floating
        and not networks.layers.encoders.has_images(observation_spec, conv_layer_params)
    ):
        return None
    return networks.EncodingNetwork(observation_spec, seed=seed, **arguments)


def describe(
    observation_spec: Any, action_spec: Any, conv_layer_params: Any = None
) -> str:
    """Returns a line about how networks encode observations and choose actions.

    Args:
      observation_spec: The nest of specs of one observation.
      action_spec: The nest of specs of one action.
      conv_layer_params: See `networks.observation_encoder`, with the same errors.
    """
    observations = networks.layers.encoders.describe(
        observation_spec, conv_layer_params
    )
    parts = [
        " ".join(["action", "/".join(map(str, path))]).rstrip() + f": {_in_words(spec)}"
        for path, spec in tree.flatten_with_path(_array_specs(action_spec))
    ]
    return "; ".join([observations, *parts])


def has_mask(observation_spec: Any, action_spec: Any) -> bool:
    """Whether an observation holds a mask of one discrete action, as `action_mask`.

    Args:
      observation_spec: The nest of specs of an observation.
      action_spec: The nest of specs of an action, before `fit_actions`.
    """
    if not isinstance(observation_spec, Mapping) or MASK not in observation_spec:
        return False
    mask, action = map(_array_specs, (observation_spec[MASK], action_spec))
    if tree.is_nested(mask) or len(observation_spec) < 2 or tree.is_nested(action):
        return False
    in_bounds = isinstance(mask, array_spec.BoundedArraySpec) and bool(
        np.all(mask.minimum >= 0) and np.all(mask.maximum <= 1)
    )
    return (
        (in_bounds or mask.dtype == np.bool_)
        and _is_bounded_discrete(action)
        and action.shape == ()
        and mask.shape == tuple(_numbers_of_values(action))
    )


def split_mask(observation: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns what networks see of an observation, or of its specs, and its mask."""
    seen = {name: part for name, part in observation.items() if name != MASK}
    return (seen if len(seen) > 1 else next(iter(seen.values()))), observation[MASK]


def has_critic_part(observation_spec: Any) -> bool:
    """Whether an observation holds a part for critics, as `critic_observation`.

    Args:
      observation_spec: The nest of specs of an observation.
    """
    is_dict = isinstance(observation_spec, Mapping)
    return is_dict and CRITIC in observation_spec and len(observation_spec) > 1


def actors_part(observation: Mapping[str, Any]) -> Any:
    """Returns what actors see of an observation with a part for critics."""
    seen = {name: part for name, part in observation.items() if name != CRITIC}
    return seen if len(seen) > 1 else next(iter(seen.values()))


def fit_actions(
    environment: environments.PyEnvironment,
    kind: Kind,
    title: str = "the algorithm",
    name: str = "",
    *,
    clip: bool = False,
    is_offline: bool = False,
) -> environments.PyEnvironment:
    """Wraps an environment so that an algorithm can choose its actions.

    Floats of other dtypes become float32, the combinations of several discrete actions
    one action for the kinds with "discrete", and several continuous actions one vector
    for those with "vector". An environment that needs none of this is returned
    unchanged, and so is an environment with other actions, which `check_actions`
    refuses.

    Args:
      environment: The environment, batched or not.
      kind: The kind of the algorithm's actions.
      title: The algorithm's name, for the error.
      name: The environment's name, for the error.
      clip: Whether float32 actions are clipped to their bounds, too, for algorithms
        that draw them from normal distributions, which have no bounds. Environments
        may refuse such actions, or subtract their size from the reward.
      is_offline: Whether the algorithm learns from recorded data, for the error.

    Raises:
      ValueError: There are more than 1,024 combinations of several discrete actions.
    """
    wrappers = environments.wrappers
    if clip and any(map(_is_bounded_float32, tree.flatten(environment.action_spec()))):
        environment = wrappers.ActionClipWrapper(environment)
    if any(map(_is_other_float, tree.flatten(environment.action_spec()))):
        environment = wrappers.Float32ActionsWrapper(environment)
    action_spec = environment.action_spec()
    specs = tree.flatten(action_spec)
    if not specs:
        return environment
    kinds = kind.split(" or ")
    if "vector" in kinds:
        is_continuous = all(map(array_spec.is_continuous, specs))
        if is_continuous and not _is_vector(action_spec):
            environment = wrappers.FlattenActionWrapper(environment)
    if "discrete" in kinds:
        is_discrete = all(map(_is_bounded_discrete, specs))
        if is_discrete and not is_one_choice(action_spec):
            number = math.prod(itertools.chain(*map(_numbers_of_values, specs)))
            has_one = sum(math.prod(spec.shape) for spec in specs) == 1
            if number > MAX_ACTIONS and not has_one:
                raise _too_many(number, title, name, is_offline)
            environment = wrappers.EnumerateActionsWrapper(environment, number)
    return environment


def _too_many(number: int, title: str, name: str, is_offline: bool) -> ValueError:
    few = f"{number:,}" if number < 10**12 else "more than 10^12"
    return ValueError(
        f"{_subject(name)}, whose actions have {few} combinations, but {title} learns "
        f"a value for each of at most {MAX_ACTIONS:,}; "
        f"{_instead('PPO', name, is_offline=is_offline)}, which "
        "chooses each part on its own, or wrap the environment in "
        "environments.wrappers.EnumerateActionsWrapper with a larger max_actions."
    )


def original_action(
    fitted: Any, environment: environments.PyEnvironment, action: Any
) -> Any:
    """Returns the original action for an action of the fitted environment.

    Args:
      fitted: The result of `fit_actions`.
      environment: The environment that was given to it.
      action: An action of `fitted`, or a batch of any size.

    Raises:
      ValueError: The action does not follow the action spec of `fitted`.
    """
    while fitted is not environment:
        action = fitted.inner_action(action)
        fitted = fitted.wrapped_env()
    return action


def original_tensors(
    fitted: Any, environment: environments.PyEnvironment, action: Any
) -> Any:
    """Returns the original action for an action of the fitted environment, in a graph.

    Args:
      fitted: The result of `fit_actions`.
      environment: The environment that was given to it.
      action: A nest of tensors `[B, ...]`, an action of `fitted`.
    """
    import tensorflow as tf  # Not at the top: --help does not wait for TensorFlow.

    if fitted is environment:
        return action
    spec = environment.action_spec()
    if is_one_choice(fitted.action_spec()):
        # A row for each action.
        choices = np.arange(fitted.action_spec().maximum + 1, dtype=np.int32)
        table = original_action(fitted, environment, choices)
        return tree.map_structure(lambda rows: tf.gather(rows, action), table)
    leaves = tree.flatten(action)
    if not tree.is_nested(fitted.action_spec()) and _is_vector(fitted.action_spec()):
        sizes = [math.prod(each.shape) for each in tree.flatten(spec)]
        leaves = tf.split(leaves[0], sizes, axis=-1)
    made = [
        _original_tensor(leaf, each)
        for leaf, each in zip(leaves, tree.flatten(spec), strict=True)
    ]
    return tree.unflatten_as(spec, made)


def _original_tensor(tensor: Any, spec: Any) -> Any:
    """Returns a part of an action with a spec's shape and dtype, within its bounds."""
    import tensorflow as tf

    shaped = tf.cast(tf.reshape(tensor, [-1, *spec.shape]), spec.dtype)
    if array_spec.is_continuous(spec) and array_spec.is_bounded(spec):
        shaped = tf.clip_by_value(shaped, spec.minimum, spec.maximum)
    return shaped


def check_actions(
    action_spec: Any,
    kind: Kind,
    title: str,
    name: str = "",
    *,
    has_bins: bool = False,
    is_offline: bool = False,
) -> None:
    """Raises an error unless an algorithm chooses actions of this spec.

    Args:
      action_spec: The nest of specs of an action, of the fitted environment.
      kind: The kind of the algorithm's actions.
      title: The algorithm's name.
      name: The environment's name; empty if it has none.
      has_bins: Whether the algorithm has the setting `num_action_bins`.
      is_offline: Whether the algorithm learns from recorded data.

    Raises:
      ValueError: The actions are of another kind, or are to be scaled and have no
        finite bounds. The message names an algorithm for them.
    """
    specs = tree.flatten(_array_specs(action_spec))
    if not specs:
        raise ValueError(
            f"{_subject(name)}, which has no actions, expected at least one to choose; "
            "give the environment an action space."
        )
    if kind == "any":
        return
    instead = functools.partial(_instead, name=name, is_offline=is_offline)
    is_discrete = [array_spec.is_discrete(spec) for spec in specs]
    if any(is_discrete) and not all(is_discrete):
        raise ValueError(
            f"{_subject(name)}, whose actions are partly discrete and partly "
            f"continuous, but {title} chooses {_choices(kind)}; "
            f"{instead('PPO')}."
        )
    *discrete, other = kind.split(" or ")
    if other == "discrete" or (discrete and all(is_discrete)):
        _check_discrete(specs, title, name, has_bins, instead)
    else:
        _check_continuous(specs, other, title, name, instead)


def check_space(space: Any, algorithm: Any, name: str) -> None:
    """Checks a space of actions before an environment is made, without TensorFlow.

    Args:
      space: Gymnasium's space of an action; None if it is not known. Only a single
        action is checked here, since several can be fitted to the algorithm.
      algorithm: The class of the algorithm.
      name: The environment's name.

    Raises:
      ValueError: See `check_actions`.
    """
    import gymnasium

    spec = None
    if isinstance(space, gymnasium.spaces.Box) and algorithm.actions == "discrete":
        spec = array_spec.BoundedArraySpec(
            space.shape, np.float32, space.low, space.high
        )
    elif isinstance(space, gymnasium.spaces.Discrete):
        spec = array_spec.BoundedArraySpec((), np.int64, 0, int(space.n) - 1)
    if spec is not None:
        check_actions(
            spec,
            algorithm.actions,
            algorithm.title,
            name,
            has_bins="num_action_bins" in algorithm.setting_fields(),
            is_offline=algorithm.is_offline,
        )


_CHOICES = {
    "discrete": "among discrete ones",
    "continuous": "continuous ones",
    "vector": "a continuous vector",
}


def _choices(kind: str) -> str:
    """Returns which actions algorithms of a kind choose, in words."""
    return " or ".join(_CHOICES[each] for each in kind.split(" or "))


def _check_discrete(
    specs: list[Any],
    title: str,
    name: str,
    has_bins: bool,
    instead: Callable[[str], str],
) -> None:
    if array_spec.is_continuous(specs[0]):
        has_one = len(specs) == 1 and math.prod(specs[0].shape) == 1
        bins = (
            "set num_action_bins=11, for example, or " if has_bins and has_one else ""
        )
        raise ValueError(
            f"{_subject(name)}, whose actions are continuous, but {title} chooses "
            f"{_CHOICES['discrete']}; {bins}{instead('SAC')}."
        )
    if len(specs) > 1 or not is_one_choice(specs[0]):
        raise ValueError(
            f"{_subject(name)}, whose action is {_list(map(_in_words, specs))}, but "
            f"{title} chooses one of the integers from 0; {instead('PPO')}."
        )


def _check_continuous(
    specs: list[Any],
    kind: str,
    title: str,
    name: str,
    instead: Callable[[str], str],
) -> None:
    if array_spec.is_discrete(specs[0]):
        raise ValueError(
            f"{_subject(name)}, whose actions are discrete, but {title} chooses "
            f"{_CHOICES[kind]}; {instead('DQN')}."
        )
    if not all(map(_has_finite_range, specs)):
        raise ValueError(
            f"{_subject(name)}, whose actions have no finite bounds, onto which "
            f"{title} scales actions; give them bounds in the environment's action "
            f"space, or {instead('PPO')}."
        )
    if kind == "vector" and (len(specs) > 1 or not _is_vector(specs[0])):
        raise ValueError(
            f"{_subject(name)}, whose actions are not a single vector, but {title} "
            f"chooses one; {instead('SAC')}."
        )


def _subject(name: str) -> str:
    return f"environment: got {name!r}" if name else "environment: got one"


# What learns the same actions from recorded data.
_FROM_DATA = {"DQN": "CQL", "PPO": "BC", "SAC": "IQL"}


def _instead(algorithm: str, name: str, *, is_offline: bool = False) -> str:
    """Names an algorithm that can be trained instead, and how to train it."""
    algorithm = _FROM_DATA[algorithm] if is_offline else algorithm
    given = [f'"{name}"' if name else "environment", "data=data"][: 1 + is_offline]
    call = f"tfrl.{algorithm}({', '.join(given)})"
    if not name:
        return f"train {algorithm}: {call}"
    return f"train {algorithm}: {call}, or tfrl train {algorithm.lower()} --env={name}"


def _array_specs(specs: Any) -> Any:
    """Returns the array specs of a nest of array or tensor specs."""
    if all(isinstance(spec, array_spec.ArraySpec) for spec in tree.flatten(specs)):
        return specs
    from tfrl.specs import tensor_spec  # Not at the top: it imports TensorFlow.

    return tensor_spec.to_nest_array_spec(specs)


def _is_other_float(spec: Any) -> bool:
    return array_spec.is_continuous(spec) and spec.dtype != np.float32


def _is_bounded_float32(spec: Any) -> bool:
    return spec.dtype == np.float32 and array_spec.is_bounded(spec)


def _is_bounded_discrete(spec: Any) -> bool:
    return array_spec.is_discrete(spec) and array_spec.is_bounded(spec)


def _is_vector(spec: Any) -> bool:
    return isinstance(spec, array_spec.ArraySpec) and len(spec.shape) == 1


def is_one_choice(action_spec: Any) -> bool:
    """Whether an action spec is one integer from 0, as networks number actions.

    Args:
      action_spec: The nest of specs of an action, of the fitted environment.
    """
    spec = _array_specs(action_spec)
    return (
        isinstance(spec, array_spec.BoundedArraySpec)
        and _is_bounded_discrete(spec)
        and spec.shape == ()
        and spec.dtype in (np.int32, np.int64)
        and int(spec.minimum) == 0
    )


def _numbers_of_values(spec: Any) -> list[int]:
    """Returns the number of values of each element, as Python's integers."""
    low, high = (
        np.broadcast_to(bound, spec.shape).ravel().tolist()
        for bound in (spec.minimum, spec.maximum)
    )
    return [b - a + 1 for a, b in zip(low, high, strict=True)]


def _has_finite_range(spec: Any) -> bool:
    if not array_spec.is_bounded(spec):
        return False
    limit = np.finfo(spec.dtype).max / 2
    return bool(np.all(spec.minimum > -limit) and np.all(spec.maximum < limit))


def _in_words(spec: Any) -> str:
    """Says what an action of a spec is."""
    size = math.prod(spec.shape)
    if array_spec.is_discrete(spec):
        if not array_spec.is_bounded(spec):
            return "any integer" if spec.shape == () else f"{size} integers"
        numbers = _numbers_of_values(spec)
        if spec.shape == ():
            return f"one of {numbers[0]:,}"
        if len(set(numbers)) == 1:
            return f"{size} choices of {numbers[0]:,}"
        return f"choices of {_list(f'{number:,}' for number in numbers)}"
    count = "a number" if size == 1 else f"{size} numbers"
    if not _has_finite_range(spec):
        return f"{count} without bounds"
    low, high = np.unique(spec.minimum), np.unique(spec.maximum)
    if low.size == high.size == 1:
        return f"{count} from {low[0]:g} to {high[0]:g}"
    return f"{count} with bounds"


def _list(words: Any) -> str:
    """Joins words: "2, 3 and 4"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else str(last)
