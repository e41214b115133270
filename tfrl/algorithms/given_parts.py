"""Parts that a program gives to an algorithm: networks, agents and their arguments."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any


def network_of(
    given: Any, observation_spec: Any, action_spec: Any, input_spec: Any, seed: int
) -> Any:
    """Returns the network that a program gives: as is, of Keras, or by a function.

    Args:
      given: What the program gives.
      observation_spec: The first argument of a function.
      action_spec: Its second argument.
      input_spec: The spec of the network's inputs.
      seed: Seeds the layers of Keras.
    """
    import keras  # Not at the top: --help does not wait for TensorFlow.

    from tfrl import networks

    if callable(given) and not isinstance(given, keras.layers.Layer):
        given = given(observation_spec, action_spec)
    is_keras = isinstance(given, keras.layers.Layer)
    if is_keras and not isinstance(given, networks.Network):
        return networks.Sequential([given], input_spec=input_spec, seed=seed)
    return given


@contextlib.contextmanager
def naming_critic(critics: Mapping[str, Any], specs: Any) -> Iterator[None]:
    """Raises a ValueError for the critic because of which an agent cannot be made.

    Args:
      critics: The program's critics by their names.
      specs: The specs of observations and of actions, to which critics are applied.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        for name, critic in critics.items():
            try:
                critic.create_variables(specs)
            except (AttributeError, TypeError, ValueError):
                raise ValueError(
                    f"network[{name!r}]: got a {type(critic).__name__} that cannot be "
                    "applied to a pair, expected a network of (observation, action), "
                    "as critics get them; begin a networks.Sequential with "
                    "networks.CriticMultiplexer(), which joins them, or give a "
                    "keras.Model with two inputs."
                ) from error
        raise


@contextlib.contextmanager
def naming_argument(given: Mapping[str, Any], make: Any) -> Iterator[None]:
    """Says which argument of an agent the program may have meant by an unknown one.

    Args:
      given: The program's arguments of the agent.
      make: The class or the function that makes the agent.
    """
    try:
        yield
    except TypeError as error:
        found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if found is None or found[1] not in given:
            raise
        every = [make, *(x.__init__ for x in getattr(make, "__mro__", [])[:-1])]
        known = {name for each in every for name in inspect.signature(each).parameters}
        near = difflib.get_close_matches(found[1], known, n=1)
        told = f"did you mean {near[0]}?" if near else "leave it out."
        raise TypeError(
            f"agent_arguments: got {found[1]!r}, which {name_of(make)} does not take; "
            f"{told}"
        ) from error


def name_of(part: Any) -> str:
    """Returns the name of a function, a class or an object's class; or a number."""
    if isinstance(part, bool | int | float | str):
        return repr(part)
    if isinstance(part, dict):
        return "{" + ", ".join(f"{k}: {name_of(v)}" for k, v in part.items()) + "}"
    name = getattr(getattr(part, "func", part), "__name__", None)
    return str(name or type(part).__name__)
