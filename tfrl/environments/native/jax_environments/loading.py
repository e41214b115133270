"""Environments in JAX as `native.Dynamics`, by their names or of your own.

What JAX lowered is kept beside the compiled programs, so that a later process neither
traces it again nor imports JAX. Your own environments are lowered by each process,
since nothing tells when their code changes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import pathlib
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl.compilation import program_cache, program_store, stablehlo
from tfrl.environments.native import dynamics as dynamics_lib
from tfrl.environments.native import self_play, team
from tfrl.environments.native.jax_environments import (
    adapters,
    forms,
    libraries,
    tracing,
)
from tfrl.specs import array_spec, spec_json, tensor_spec
from tfrl.system import log
from tfrl.version import __version__

_FORMS = ("gymnax", "brax", "dm_env")
_REQUIRED = re.compile(r"[\w.-]+")  # The name in front of a requirement's bounds.


class _Facts(NamedTuple):
    """What is known of an environment without JAX.

    Attributes:
      observation_spec: The nest of tensor specs of an observation.
      action_spec: The nest of tensor specs of an action.
      state: The dtype's name and the shape of each leaf of the flat state of a member.
      observed: For each leaf of an observation, its place in the flat state.
      draws: Whether a step uses random numbers.
      max_episode_steps: The limit of episodes, or None.
      renders: Whether its states can be drawn.
    """

    observation_spec: Any
    action_spec: Any
    state: list[tuple[str, list[int]]]
    observed: list[int]
    draws: bool
    max_episode_steps: int | None
    renders: bool


class _Source:
    """An environment, made and traced when something is needed that is not kept."""

    def __init__(self, make: Callable[[], adapters.Made], key: str = "") -> None:
        """Makes nothing yet.

        Args:
          make: Makes the environment.
          key: What tells it from others, for the cache; empty to keep nothing.
        """
        self._make, self._key = make, key

    @functools.cached_property
    def made(self) -> adapters.Made:
        with tracing.session():
            return self._make()

    @functools.cached_property
    def traced(self) -> tracing.Traced:
        return tracing.Traced(self.made.rules, self.made.action_spec)

    def facts(self) -> _Facts:
        """Returns the facts, from the cache or by a trace."""
        kept = self._read("facts")
        if kept is not None:
            observation, action = (spec_json.decode(x) for x in kept[:2])
            return _Facts(observation, action, *kept[2:])
        made, traced = self.made, self.traced
        facts = _Facts(
            _bounded(traced.observation_spec, made.observation_bounds),
            tensor_spec.from_spec(made.action_spec),
            traced.state,
            traced.observed,
            made.rules.draws,
            made.max_episode_steps,
            made.render is not None,
        )
        specs = spec_json.encode(facts[0]), spec_json.encode(facts[1])
        self._write("facts", [*specs, *facts[2:]])
        return facts

    def function(self, name: str) -> stablehlo.Function:
        """Returns a function of `Traced.lower` for TensorFlow."""

        def lower(members: int, platform: str) -> stablehlo.Program:
            part = f"{name} {members} {platform}"
            kept = self._read(part)
            if kept is None:
                program = self.traced.lower(name, members, platform)
                outputs = [(x.dtype.name, x.shape.as_list()) for x in program.outputs]
                self._write(part, [program.text, outputs])
                return program
            text, outputs = kept
            specs = (tf.TensorSpec(shape, dtype) for dtype, shape in outputs)
            return stablehlo.Program(text, tuple(specs))

        return stablehlo.Function(lower)

    def render(self, state: Sequence[np.ndarray]) -> np.ndarray:
        """Draws one member, whose flat state is given."""
        assert self.made.render is not None
        with tracing.session():
            return np.asarray(self.made.render(self.traced.state_of(state)), np.uint8)

    def _read(self, part: str) -> Any:
        store = _store() if self._key else None
        found = store.read(f"{self._key} {part}") if store else {}
        return json.loads(zlib.decompress(found["jax"])) if found else None

    def _write(self, part: str, content: Any) -> None:
        store = _store() if self._key else None
        if store:
            packed = zlib.compress(json.dumps(content).encode())
            store.write(f"{self._key} {part}", "jax", packed)


@functools.cache
def load(name: str) -> dynamics_lib.Dynamics:
    """Returns the dynamics of an environment of a library.

    Args:
      name: Its name, such as "gymnax/Breakout-MinAtar".

    Raises:
      ImportError: If the library is not installed.
      ValueError: If there is no environment of this name, or it cannot be used here;
        the text says why.
    """
    library, own = _find(name)
    library.require()

    def make() -> adapters.Made:
        library.check(own)
        return library.make(own)

    dynamics = _dynamics(_Source(make, _key(library, own)))
    if self_play.is_game(dynamics):
        return self_play.of_game(dynamics)
    return team.of_team(dynamics) if team.is_team(dynamics) else dynamics


def check(name: str) -> None:
    """Raises the errors of `load`, without a trace if the environment is kept."""
    load(name)


def names(library: libraries.Library) -> list[str]:
    """Returns the names of a library's environments; none if it is not installed."""
    try:
        library.require()
    except ImportError:
        return []
    with tracing.session():
        return [library.prefix + name for name in library.names()]


def from_jax(
    environment: Any,
    form: str | Callable[[Any], forms.Rules],
    *,
    action_spec: Any,
    params: Any = None,
    observation_bounds: Any = None,
    max_episode_steps: int | None = None,
) -> dynamics_lib.Dynamics:
    """Returns the dynamics of an environment of your own, whose functions JAX traces.

    Its `reset` and `step` are pure functions of one member, without a reset at an
    episode's end. JAX is needed to trace them, and computes nothing later.

    Args:
      environment: An object with `reset` and `step`.
      form: The form of these: "gymnax", "brax" or "dm_env", see the functions of these
        names in `jax_environments.forms`; or a function that returns the `forms.Rules`
        of the environment.
      action_spec: The nest of specs of an action, of arrays or tensors; with bounds,
        without which actions are unbounded.
      params: The parameters that functions in the form of gymnax take.
      observation_bounds: A pair of the least and the greatest value, which may be
        arrays; dictionaries and tuples of pairs for such observations; None for none.
      max_episode_steps: The number of steps after which an episode is truncated; None
        for no limit but the environment's own.

    Raises:
      ImportError: If JAX is not installed.
      ValueError: If there is no such form, or JAX cannot trace the functions, or they
        have side effects, several players, or something else that the text names.
    """
    if isinstance(form, str):
        if form not in _FORMS:
            raise ValueError(
                f"form: got {form!r}, expected one of {', '.join(_FORMS)}, or a "
                "function that returns forms.Rules."
            )
        as_rules = getattr(forms, form)
        make = (
            functools.partial(as_rules, params=params) if form == "gymnax" else as_rules
        )
    else:
        make = form
    if isinstance(environment, type):
        raise ValueError(
            f"environment: got the class {environment.__name__}, expected an object "
            f"of it; write {environment.__name__}()."
        )
    spec = tensor_spec.to_nest_array_spec(tensor_spec.from_spec(action_spec))
    source = _Source(
        lambda: adapters.Made(
            make(environment), spec, observation_bounds, max_episode_steps
        )
    )
    before = dict(getattr(environment, "__dict__", {}))
    dynamics = _dynamics(source)
    after = getattr(environment, "__dict__", {})
    changed = [x for x in after if x not in before or after[x] is not before[x]]
    if changed:
        raise ValueError(
            f"environment: got a reset or step that assigns to {', '.join(changed)} of "
            f"the {type(environment).__name__}, expected pure functions, since they "
            "run only while JAX traces them; keep it in the state."
        )
    return dynamics


def _dynamics(source: _Source) -> dynamics_lib.Dynamics:
    facts = source.facts()
    step, restart = map(source.function, ("step", "restart"))

    def initial(random: tf.Tensor) -> Any:
        members = random.shape[0]
        empty = [tf.zeros([members, *shape], dtype) for dtype, shape in facts.state]
        return tuple(restart(tf.fill([members], True), random, *empty))

    def outcome(state: Any, action: Any, random: tf.Tensor) -> dynamics_lib.Outcome:
        drawn = [random] * facts.draws
        results = step(*drawn, *state, *tf.nest.flatten(action))
        *new, reward, terminated, truncated = results
        return dynamics_lib.Outcome(tuple(new), reward, terminated, truncated)

    def observe(state: Any) -> Any:
        return tf.nest.pack_sequence_as(
            facts.observation_spec, [state[i] for i in facts.observed]
        )

    return dynamics_lib.Dynamics(
        initial=initial,
        step=outcome,
        restart=lambda state, needed, random: tuple(restart(needed, random, *state)),
        observe=observe,
        observation_spec=facts.observation_spec,
        action_spec=facts.action_spec,
        num_initial_randoms=tracing.KEY_SIZE,
        num_step_randoms=tracing.KEY_SIZE * facts.draws,
        max_episode_steps=facts.max_episode_steps,
        render=source.render if facts.renders else None,
    )


def _bounded(spec: Any, bounds: Any) -> Any:
    """Returns the nest of tensor specs of array specs, with the bounds that there are.

    Raises:
      ValueError: If the bounds are those of other parts than the observation has, or no
        pairs, or do not broadcast to an array's shape.
    """
    is_dict, is_sequence = isinstance(bounds, dict), isinstance(bounds, tuple | list)
    if isinstance(spec, dict):
        fits = is_dict and bounds.keys() <= spec.keys()
    else:
        fits = is_sequence and len(bounds) == (
            len(spec) if isinstance(spec, tuple) else 2
        )
    if bounds is not None and not fits:
        raise ValueError(
            f"observation_bounds: got {bounds!r} for {spec}, expected a pair of the "
            "least and the greatest value for each array, in dictionaries and tuples "
            "as in the observation, or None."
        )
    if isinstance(spec, dict):
        return {k: _bounded(x, bounds and bounds.get(k)) for k, x in spec.items()}
    if isinstance(spec, tuple):
        return tuple(_bounded(x, bounds and bounds[i]) for i, x in enumerate(spec))
    if bounds is not None:
        spec = array_spec.BoundedArraySpec(spec.shape, spec.dtype, *bounds)
    return tensor_spec.from_spec(spec)


def _find(name: str) -> tuple[libraries.Library, str]:
    found = libraries.find(name)
    assert found is not None  # The suites' names have prefixes.
    return found


def _key(library: libraries.Library, name: str) -> str:
    """Returns the name under which an environment is kept; empty if it is not."""
    if not tracing.has_usual_settings():
        return ""
    return json.dumps([library.prefix, name, *_versions(library.distribution)])


def _versions(distribution: str) -> list[str]:
    """Returns the releases of a package, of JAX and of what the package requires.

    MuJoCo, for example, is a part of what Brax computes.
    """
    required = importlib.metadata.requires(distribution) or []
    names = {_REQUIRED.match(each)[0] for each in required}  # type: ignore[index]
    versions = []
    for each in sorted({"jax", distribution} | names):
        # Not all are installed, such as those for tests.
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{each} {importlib.metadata.version(each)}")
    return versions


@functools.cache
def _store() -> program_store.ProgramStore | None:
    """Returns the place of what was lowered; None without a cache."""
    try:
        root = program_cache.find_root(os.environ)
    except program_store.NoPlaceError:
        return None
    # A development's version stays the same while its code changes.
    files = sorted(pathlib.Path(__file__).parent.glob("*.py"))
    code = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    kind = json.dumps(["StableHLO", __version__, tf.__version__, code])
    return program_store.ProgramStore(root, kind, log.warn)
