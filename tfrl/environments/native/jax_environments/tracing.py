"""Traces rules with JAX, and lowers them to programs. The one file that imports JAX.

JAX computes nothing but constants here, on the CPU. A process that has not imported it
yet gets no other device of it; one that has keeps its settings.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl.compilation import stablehlo
from tfrl.environments import extras
from tfrl.environments.native.jax_environments import forms
from tfrl.specs import array_spec

# The random numbers from which a key is made, of 16 bits each.
KEY_SIZE = 4
_GENERATOR = "threefry2x32"
# Settings of JAX that change what is lowered, and their defaults.
_SETTINGS = {
    "jax_enable_x64": False,
    "jax_default_prng_impl": _GENERATOR,
    "jax_threefry_partitionable": True,
    "jax_default_matmul_precision": None,
    "jax_numpy_dtype_promotion": "standard",
}
_PLATFORMS = "JAX_PLATFORMS"
_OLDEST = 0, 10  # As the extra says.
# Lowered for it, linear algebra is operations of StableHLO, and no library's.
_WITHOUT_LIBRARIES = "tpu"


@contextlib.contextmanager
def session() -> Iterator[types.ModuleType]:
    """Imports JAX, and yields it; arrays that are made in the context are the CPU's.

    Raises:
      ImportError: If JAX is not installed, or too old.
    """
    extras.require("jax_environments", "pip install 'tfrl[jax]'", "jax")
    if "jax" in sys.modules:
        import jax
    else:
        before = os.environ.get(_PLATFORMS)
        os.environ[_PLATFORMS] = "cpu"
        try:
            import jax
        finally:
            del os.environ[_PLATFORMS]
            if before is not None:
                os.environ[_PLATFORMS] = before
    if jax.__version_info__ < _OLDEST:
        raise ImportError(
            f"jax: got release {jax.__version__}, whose programs TensorFlow "
            f"{tf.__version__} cannot take, expected {'.'.join(map(str, _OLDEST))} or "
            "later; install it with: pip install 'tfrl[jax]'"
        )
    # Libraries such as MJX ask for the platform of the device.
    with jax.default_device(jax.devices("cpu")[0]):
        yield jax


def has_usual_settings() -> bool:
    """Whether JAX lowers, or would lower, by its default settings."""
    if "jax" not in sys.modules:
        return not any(name.upper() in os.environ for name in _SETTINGS)
    import jax

    return all(getattr(jax.config, name, x) == x for name, x in _SETTINGS.items())


class _Layout(NamedTuple):
    """How a pytree is made of plain arrays: its structure, and the kinds of keys."""

    treedef: Any
    generators: tuple[str | None, ...]

    @classmethod
    def of(cls, tree: Any) -> _Layout:
        """Returns the layout of a pytree of shapes."""
        import jax

        leaves, treedef = jax.tree.flatten(tree)
        return cls(treedef, tuple(map(_generator, leaves)))

    def flatten(self, tree: Any) -> list[Any]:
        import jax

        leaves = zip(jax.tree.leaves(tree), self.generators, strict=True)
        return [x if kind is None else jax.random.key_data(x) for x, kind in leaves]

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        import jax

        return self.treedef.unflatten(
            x if kind is None else jax.random.wrap_key_data(x, impl=kind)
            for x, kind in zip(leaves, self.generators, strict=True)
        )


class Traced:
    """Rules whose shapes are known, and that can be lowered for any number of members.

    Attributes:
      state: The dtype's name and the shape of each leaf of the flat state of a member.
      observation_spec: The nest of array specs of an observation, without bounds.
      observed: For each of its leaves, its place in the flat state.
    """

    def __init__(self, rules: forms.Rules, action_spec: Any) -> None:
        """Traces a reset and a step.

        Args:
          rules: The rules.
          action_spec: The nest of array specs of an action.

        Raises:
          ValueError: If they cannot be traced, or a step returns another state or
            observation than a reset, or rewards of several players.
        """
        self._rules, self._action_spec = rules, action_spec
        shared: list[list[int | None]] = []

        def reset(key: Any) -> Any:
            state, observation = rules.reset(key)
            self._state, self._seen = _Layout.of(state), _Layout.of(observation)
            shared.append(_places(state, observation))
            return state, observation

        def step(key: Any, state: Any, action: Any) -> forms.Step:
            result = rules.step(key, state, action)
            shared.append(_places(result.state, result.observation))
            return result

        with session() as jax:
            key = jax.random.key(0, impl=_GENERATOR)
            action = tf.nest.map_structure(
                lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), action_spec
            )
            state, observation = _trace(jax, "reset", reset, key)
            after = _trace(jax, "step", step, key, state, action)
            _check_like(jax, "state", after.state, state)
            _check_like(jax, "observation", after.observation, observation)
            _check_scalars(after)
        number = len(self._state.generators)
        # Where a state holds its observation, as Brax's does, it is kept once.
        at_reset, at_step = shared
        places = [x if x == y else None for x, y in zip(at_reset, at_step, strict=True)]
        self._apart = [i for i, place in enumerate(places) if place is None]
        places = [
            number + self._apart.index(i) if place is None else place
            for i, place in enumerate(places)
        ]
        with session() as jax:
            flat = jax.eval_shape(self._flat, state, observation)
        self.state = [(x.dtype.name, list(x.shape)) for x in flat]
        shapes = jax.tree.leaves(observation)
        nest = _as_nest(self._seen.treedef.unflatten(map(_Leaf, range(len(places)))))
        self.observed = [places[i] for i in tf.nest.flatten(nest)]
        self.observation_spec = tf.nest.map_structure(
            lambda i: array_spec.ArraySpec(shapes[i].shape, shapes[i].dtype), nest
        )

    def state_of(self, leaves: Sequence[Any]) -> Any:
        """Returns the library's state of one member, whose flat state is given."""
        with session():
            return self._state.unflatten(leaves[: len(self._state.generators)])

    def lower(self, name: str, members: int, platform: str) -> stablehlo.Program:
        """Lowers a function.

        Args:
          name: "restart" takes a bool `[B]`, random numbers, float32 `[B, KEY_SIZE]`,
            and the flat state; it returns the flat state in which the members chosen
            begin an episode. "step" takes random numbers if the rules draw, the flat
            state and the flat action, and returns the flat state, the rewards, float32
            `[B]`, and bools `[B]`: terminated, truncated.
          members: The number of members, `B`.
          platform: "cpu" or "cuda".

        Raises:
          ValueError: If the program calls what TensorFlow does not have, or the two
            libraries' versions do not fit each other.
        """
        with session() as jax:

            def specs(*leaves: Any) -> list[Any]:
                return [
                    jax.ShapeDtypeStruct((members, *shape), dtype)
                    for dtype, shape in leaves
                ]

            random = specs((np.float32, (KEY_SIZE,)))
            state = specs(*self.state)
            if name == "restart":
                inputs = [*specs((bool, ())), *random, *state]
                return _lower(jax, self._restart, inputs, platform)
            actions = tf.nest.flatten(self._action_spec)
            inputs = random * self._rules.draws + state
            inputs += specs(*((x.dtype, x.shape) for x in actions))
            return _lower(jax, self._step, inputs, platform)

    def _step(self, *inputs: Any) -> list[Any]:
        import jax

        keys = None
        if self._rules.draws:
            keys, inputs = _keys(inputs[0]), inputs[1:]
        number = len(self._state.generators)
        state, actions = inputs[:number], inputs[number + len(self._apart) :]
        return jax.vmap(self._advance, in_axes=(None if keys is None else 0, 0, 0))(
            keys, state, actions
        )

    def _restart(self, needed: Any, random: Any, *leaves: Any) -> list[Any]:
        """Resets some members at a time, until none is left that needs it.

        Of `B` members of which `n` need it, about `n + sqrt(B)` are computed, and none
        if `n` is 0.
        """
        import jax
        import jax.numpy as jnp

        members = needed.shape[0]
        at_once = math.isqrt(members - 1) + 1

        def body(carry: Any) -> Any:
            needed, leaves = carry
            # What lies behind the last member is dropped.
            (chosen,) = jnp.nonzero(needed, size=at_once, fill_value=members)
            new = jax.vmap(self._begin)(_keys(random.at[chosen].get(mode="clip")))
            leaves = [
                x.at[chosen].set(y, mode="drop")
                for x, y in zip(leaves, new, strict=True)
            ]
            return needed.at[chosen].set(False, mode="drop"), leaves

        return jax.lax.while_loop(
            lambda carry: jnp.any(carry[0]), body, (needed, list(leaves))
        )[1]

    def _begin(self, key: Any) -> list[Any]:
        """Returns the flat state of one member's first step."""
        return self._flat(*self._rules.reset(key))

    def _advance(self, key: Any, leaves: Any, actions: Any) -> list[Any]:
        """Returns the flat state of one member's next step, reward and ends."""
        import jax.numpy as jnp

        action = tf.nest.pack_sequence_as(self._action_spec, list(actions))
        step = self._rules.step(key, self._state.unflatten(leaves), action)
        return [
            *self._flat(step.state, step.observation),
            jnp.asarray(step.reward).astype(jnp.float32),
            jnp.asarray(step.terminated).astype(bool),
            jnp.asarray(step.truncated).astype(bool),
        ]

    def _flat(self, state: Any, observation: Any) -> list[Any]:
        seen = self._seen.flatten(observation)
        return [*self._state.flatten(state), *(seen[i] for i in self._apart)]


def _generator(leaf: Any) -> str | None:
    """Returns the name of the generator of a traced key; None for numbers."""
    import jax

    dtype = getattr(leaf, "dtype", np.int32)
    is_key = jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)
    return str(jax.random.key_impl(leaf)) if is_key else None


class _Leaf(int):
    """The number of a leaf in a pytree."""


def _as_nest(tree: Any) -> Any:
    """Returns an observation as a nest of dicts and tuples, for `tf.nest`.

    Raises:
      ValueError: If it is a graph, or something that has no name here.
    """
    if isinstance(tree, _Leaf):
        return int(tree)
    if type(tree).__name__ == "GraphsTuple":
        raise ValueError(
            "observation: got a graph, expected arrays, dictionaries and tuples, since "
            "networks here read no graphs; observe its arrays under names of their own."
        )
    if dataclasses.is_dataclass(tree):
        fields = {x.name: getattr(tree, x.name) for x in dataclasses.fields(tree)}
    elif isinstance(tree, Mapping):
        fields = dict(tree)
    elif hasattr(tree, "_asdict"):
        fields = tree._asdict()
    elif isinstance(tree, tuple | list):
        return tuple(map(_as_nest, tree))
    else:
        raise ValueError(
            f"observation: got a {type(tree).__name__}, expected arrays, dictionaries, "
            "tuples, named tuples and dataclasses; observe a dictionary."
        )
    # What is no part of the pytree is constant.
    return {k: _as_nest(x) for k, x in fields.items() if _has_leaf(x)}


def _has_leaf(tree: Any) -> bool:
    import jax

    return any(isinstance(x, _Leaf) for x in jax.tree.leaves(tree))


def _places(state: Any, observation: Any) -> list[int | None]:
    """Returns, for the leaves of an observation, where the state has the same one."""
    import jax

    places = {id(leaf): i for i, leaf in enumerate(jax.tree.leaves(state))}
    return [places.get(id(leaf)) for leaf in jax.tree.leaves(observation)]


def _trace(jax: Any, name: str, function: Callable[..., Any], *inputs: Any) -> Any:
    """Returns the shapes that a function of the user's returns.

    Raises:
      ValueError: If JAX cannot trace it.
    """
    errors = jax.errors
    try:
        return jax.eval_shape(function, *inputs)
    except (
        errors.ConcretizationTypeError,
        errors.TracerArrayConversionError,
        errors.TracerIntegerConversionError,
        errors.NonConcreteBooleanIndexError,
    ) as error:
        got = "a Python `if`, loop or NumPy function on values that JAX traces"
        remedy = "use jnp.where, jax.lax.cond, jax.lax.fori_loop and jax.numpy"
        cause = error
    except errors.UnexpectedTracerError as error:
        got = "a value that an earlier call left outside of the state"
        remedy, cause = "keep everything that changes in the state", error
    except Exception as error:
        got, cause = type(error).__name__, error
        remedy = "see whether its form is another one, or call it under jax.jit"
    text = (str(cause).strip().splitlines() or [""])[0]
    raise ValueError(
        f"{name}: got {got} ({text}), expected a pure function that JAX can trace; "
        f"{remedy}."
    ) from cause


def _check_like(jax: Any, what: str, after: Any, before: Any) -> None:
    """Raises a ValueError unless a step's pytree has the shapes of a reset's."""
    flatten = jax.tree_util.tree_flatten_with_path
    (new, new_tree), (old, old_tree) = flatten(after), flatten(before)
    if new_tree != old_tree:
        raise ValueError(
            f"step: got the {what} {new_tree}, expected {old_tree}, as the reset "
            "returns; return the same structure from both."
        )
    for (path, got), (_, expected) in zip(new, old, strict=True):
        if (got.shape, got.dtype) != (expected.shape, expected.dtype):
            raise ValueError(
                f"step: got {_describe(got)} at {what}{jax.tree_util.keystr(path)}, "
                f"expected {_describe(expected)}, as the reset returns; return the "
                "same shape and dtype from both."
            )


def _check_scalars(step: Any) -> None:
    """Raises a ValueError unless reward and ends are those of one player."""
    for name in ("reward", "terminated", "truncated"):
        shape = np.shape(getattr(step, name))
        if shape:
            raise ValueError(
                f"step: got {name} of shape {list(shape)}, expected a number, since "
                "there is one player; choose the numbers of one, or their sum."
            )


def _describe(leaf: Any) -> str:
    return f"{leaf.dtype} {list(leaf.shape)}"


def _keys(random: Any) -> Any:
    """Returns keys `[B]` made of random numbers `[B, KEY_SIZE]`, uniform in [0, 1)."""
    import jax
    import jax.numpy as jnp

    halves = (random * 2.0**16).astype(jnp.uint32)
    data = halves[:, ::2] << 16 | halves[:, 1::2]
    return jax.random.wrap_key_data(data, impl=_GENERATOR)


def _lower(
    jax: types.ModuleType, function: Callable[..., Any], inputs: Any, platform: str
) -> stablehlo.Program:
    # Otherwise arguments that are not used would be left out.
    traced = jax.jit(function, keep_unused=True).trace(*inputs)
    specs = [
        tf.TensorSpec(x.shape, tf.as_dtype(x.dtype))
        for x in jax.tree.leaves(traced.out_info)
    ]
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    if unknown := stablehlo.unknown_calls(text):
        # JAX itself refuses some programs for another platform, such as callbacks.
        with contextlib.suppress(Exception):
            text = traced.lower(lowering_platforms=(_WITHOUT_LIBRARIES,)).as_text()
        if stablehlo.unknown_calls(text):
            raise stablehlo.UnusableProgramError(
                f"environment: got calls of {', '.join(unknown)}, which only JAX has, "
                "expected operations that TensorFlow's XLA knows; remove callbacks and "
                "jax.debug, and replace kernels and linear algebra of libraries."
            )
    program = stablehlo.Program(stablehlo.with_packed_bools(text), tuple(specs))
    arguments = [tf.TensorSpec(x.shape, tf.as_dtype(x.dtype)) for x in inputs]
    if reason := stablehlo.obstacle(program, arguments):
        raise stablehlo.UnusableProgramError(
            f"jax: got release {jax.__version__}, whose programs TensorFlow "
            f"{tf.__version__} cannot read ({reason.strip().splitlines()[0]}), "
            "expected one of about the same age; install jax 0.10."
        )
    return program
