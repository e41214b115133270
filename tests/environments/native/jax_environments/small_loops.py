"""Small loops that train in environments in JAX, for comparisons."""

import tfrl
from tests.environments.native.jax_environments import counters
from tests.environments.native.jax_environments.test_equality import NAMES
from tfrl.environments import native

# The environment of `counters`, one of each library, and one of Jumanji with a limit.
OWN = "counters"
EVERY = (
    OWN,
    *(f"{library}/{names[0]}" for library, names in NAMES.items()),
    "jumanji/Maze-v0",
)


def make_loop(name, seed=0, **settings):
    """PPO's loop in an environment of `EVERY`."""
    return tfrl.PPO(
        _own() if name == OWN else name,
        seed=seed,
        num_envs=3,
        collect_steps_per_iteration=4,
        minibatch_size=6,
        num_epochs=1,
        fc_layer_params=(4,),
        **settings,
    ).build()


def _own():
    environment, arguments = counters.MADE["gymnax"]
    return native.from_jax(
        environment,
        "gymnax",
        action_spec=counters.ACTION,
        max_episode_steps=9,
        **arguments,
    )
