"""The environments step in TensorFlow as they do in JAX, from the same keys, actions.

In TensorFlow they are functions of the `Dynamics`, compiled by TensorFlow's XLA; in JAX
they are the library's own functions under `jax.jit(jax.vmap(...))`. Integers, booleans,
ends and keys must be equal, and floats close.
"""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tests.environments.native.jax_environments import own_loops
from tfrl.environments import suites
from tfrl.environments.native import dynamics_checks
from tfrl.environments.native.jax_environments import libraries

MEMBERS = 8
# Five of each library; three of those that compile for minutes.
NAMES = {
    "gymnax": (
        "CartPole-v1",
        "Breakout-MinAtar",
        "Asterix-MinAtar",
        "DeepSea-bsuite",
        "FourRooms-misc",
    ),
    "brax": ("fast", "inverted_pendulum", "reacher", "hopper", "ant"),
    "jumanji": ("Game2048-v1", "Snake-v1", "Maze-v0", "Minesweeper-v0", "TSP-v1"),
    "craftax": (
        "Craftax-Classic-Symbolic-v1",
        "Craftax-Classic-Pixels-v1",
        "Craftax-Symbolic-v1",
    ),
    "navix": (
        "Navix-Empty-5x5-v0",
        "Navix-DoorKey-5x5-v0",
        "Navix-Dynamic-Obstacles-5x5-v0",
        "Navix-LavaGapS5-v0",
        "Navix-SimpleCrossingS9N1-v0",
    ),
    "xland": (
        "MiniGrid-Empty-5x5",
        "MiniGrid-DoorKey-5x5",
        "MiniGrid-FourRooms",
        "MiniGrid-MemoryS8",
        "MiniGrid-Unlock",
    ),
    "pgx": (
        "2048",
        "minatar-breakout",
        "minatar-asterix",
        "minatar-freeway",
        "minatar-space_invaders",
    ),
    "playground": (
        "CartpoleBalance",
        "PendulumSwingup",
        "CartpoleSwingup",
        "CheetahRun",
        "HopperHop",
    ),
}
# Solvers of physics magnify a difference in the last bit of a float from step to step,
# so each of these steps starts from the state of JAX.
PHYSICS = ("brax", "playground")
FLOATS = 1e-5
# Contacts with the ground magnify it within a step. Such a step may differ by a few
# times what JAX's own step does from a state whose floats are moved by their last bits.
CONTACTS = ("hopper",)
FEW = 4
# XLA compiles the others for a minute or more.
SLOW = ("brax", "craftax", "navix", "playground")


class Found(NamedTuple):
    """What a comparison found.

    Attributes:
      episodes: The number of episodes that ended.
      difference: The largest difference of two floats, relative to those above 1.
      sensitivity: That of JAX's own steps from states that differ in their last bits; 0
        without contacts.
    """

    episodes: int
    difference: float
    sensitivity: float

    @property
    def allowed(self):
        return max(FLOATS, FEW * self.sensitivity)


def compare(library, name, steps):
    """Steps an environment in TensorFlow and in JAX, and compares all that they return.

    Raises:
      AssertionError: If integers, booleans or ends differ.
    """
    jax = pytest.importorskip("jax")
    prefix = next(x for x in libraries.LIBRARIES if x.prefix == f"{library}/")
    pytest.importorskip(prefix.module)
    dynamics = suites.find_dynamics(f"{library}/{name}")
    compiled = functools.partial(tf.function, jit_compile=True, autograph=False)
    step, restart, observe = map(
        compiled, (dynamics.step, dynamics.restart, dynamics.observe)
    )
    with jax.default_device("cpu"):
        reset, advance = getattr(own_loops, library)(name)
        own_reset, own_step = jax.jit(jax.vmap(reset)), jax.jit(jax.vmap(advance))
        rng, bits = np.random.default_rng(0), np.random.default_rng(1)
        random = _draw(rng)
        spec = dynamics_checks.check(dynamics, MEMBERS)
        nothing = tf.nest.map_structure(lambda x: tf.zeros(x.shape, x.dtype), spec)
        state = restart(nothing, np.ones(MEMBERS, bool), random)
        own, seen = own_reset(_keys(random))
        found = Found(0, _difference(state, observe(state), own, seen), 0.0)
        for _ in range(steps):
            action = _action(rng, dynamics.action_spec, seen)
            random, key = _draw(rng), _draw(rng)
            if library in PHYSICS:
                state = _like_own(state, own)
            drawn = random if dynamics.num_step_randoms else tf.zeros([MEMBERS, 0])
            result = step(state, action, drawn)
            state, before = result.state, own
            own, seen, reward, *ends = own_step(_keys(random), own, action)
            sensitivity = 0.0
            if name in CONTACTS:
                moved = jax.tree.map(functools.partial(_moved, bits), before)
                after, *_ = own_step(_keys(random), moved, action)
                sensitivity = _sensitivity(own, after)
            np.testing.assert_array_equal(result.terminated, np.asarray(ends[0], bool))
            np.testing.assert_array_equal(result.truncated, np.asarray(ends[1], bool))
            over = np.asarray(ends[0], bool) | np.asarray(ends[1], bool)
            found = Found(
                found.episodes + int(over.sum()),
                max(
                    found.difference,
                    _difference(state, observe(state), own, seen),
                    _apart(result.reward, np.asarray(reward, np.float32)),
                ),
                max(found.sensitivity, sensitivity),
            )
            if over.any():
                state = restart(state, over, key)
                first = own_reset(_keys(key))
                own, seen = jax.tree.map(
                    lambda x, y, over=over: _choose(over, x, y), first, (own, seen)
                )
                assert _difference(state, observe(state), own, seen) < found.allowed
        return found


def _draw(rng):
    """Numbers in [0, 1) of 16 bits, from which keys are made."""
    return (rng.integers(0, 2**16, (MEMBERS, 4)) / 2**16).astype(np.float32)


def _keys(random):
    import jax

    halves = (random * 2**16).astype(np.uint32)
    data = np.stack(
        [halves[:, 0] << 16 | halves[:, 1], halves[:, 2] << 16 | halves[:, 3]], 1
    )
    return jax.random.wrap_key_data(data, impl="threefry2x32")


def _action(rng, spec, seen):
    if not spec.dtype.is_integer:
        return rng.uniform(-1, 1, (MEMBERS, *spec.shape)).astype(np.float32)
    count = np.asarray(spec.maximum) + 1
    if not isinstance(seen, dict) and not hasattr(seen, "action_mask"):
        return rng.integers(0, count, (MEMBERS, *spec.shape), np.int32)
    mask = np.asarray(
        seen["action_mask"] if isinstance(seen, dict) else seen.action_mask
    )
    # An action of several numbers is a place in the mask.
    flat = mask.reshape(MEMBERS, -1)
    chosen = np.argmax(rng.random(flat.shape) * flat, axis=1)
    places = np.unravel_index(chosen, mask.shape[1:])
    return np.stack(places, -1).astype(np.int32).reshape(MEMBERS, *spec.shape)


def _choose(over, new, old):
    import jax
    import jax.numpy as jnp

    if jnp.issubdtype(new.dtype, jax.dtypes.prng_key):
        data = _choose(over, jax.random.key_data(new), jax.random.key_data(old))
        return jax.random.wrap_key_data(data)
    return jnp.where(over.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def _leaves(tree):
    """The leaves of a pytree of JAX as arrays, keys as their numbers."""
    import jax

    return [
        np.asarray(
            jax.random.key_data(x)
            if jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key)
            else x
        )
        for x in jax.tree.leaves(tree)
    ]


def _like_own(state, own):
    leaves = _leaves(own)
    return (*leaves, *state[len(leaves) :])


def _moved(bits, leaf):
    """A leaf whose floats are moved up or down by their last bits."""
    import jax

    if not jax.numpy.issubdtype(leaf.dtype, np.floating):
        return leaf
    leaf = np.asarray(leaf)
    towards = np.where(bits.random(leaf.shape) < 0.5, -np.inf, np.inf)
    return np.nextafter(leaf, towards.astype(leaf.dtype))


def _sensitivity(one, other):
    """The largest difference of the floats of two states of JAX."""
    pairs = zip(_leaves(one), _leaves(other), strict=True)
    floats = [(x, y) for x, y in pairs if np.issubdtype(x.dtype, np.floating)]
    return max(_apart(x, y) for x, y in floats)


def _difference(state, observation, own, seen):
    """The largest difference of floats, after a check of all other leaves."""
    leaves = [x for x in _leaves(own) if x.size]
    states = [x for x in state if tf.size(x)][: len(leaves)]
    pairs = [
        *zip(states, leaves, strict=True),
        *zip(tf.nest.flatten(observation), _by_name(seen), strict=True),
    ]
    return max(_apart(x, y) for x, y in pairs)


def _by_name(tree):
    """The leaves of an observation in JAX, in the order of the names of its fields."""
    if hasattr(tree, "_asdict"):
        tree = tree._asdict()
    elif dataclasses.is_dataclass(tree):
        tree = {x.name: getattr(tree, x.name) for x in dataclasses.fields(tree)}
    if isinstance(tree, dict):
        return [leaf for name in sorted(tree) for leaf in _by_name(tree[name])]
    return _leaves(tree)


def _apart(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    if not np.issubdtype(theirs.dtype, np.floating):
        np.testing.assert_array_equal(ours, theirs)
        return 0.0
    if not theirs.size:
        return 0.0
    scale = np.maximum(np.abs(theirs), 1)
    return float(np.max(np.abs(ours - theirs) / scale))


def cases():
    for library, names in NAMES.items():
        for name in names:
            is_slow = library in SLOW or name != names[0]
            marks = [pytest.mark.slow, pytest.mark.timeout(3600)] if is_slow else []
            yield pytest.param(library, name, 1_000 if is_slow else 100, marks=marks)


@pytest.mark.parametrize(("library", "name", "steps"), list(cases()))
def test_steps_are_those_of_jax(library, name, steps):
    found = compare(library, name, steps)
    assert found.difference < found.allowed
