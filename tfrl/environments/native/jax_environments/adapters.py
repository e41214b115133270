"""Makes the environments of each library in JAX, and returns their names.

A library is imported only where one of its names is used.
"""

from __future__ import annotations

import colorsys
import contextlib
import functools
import importlib
import io
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tfrl.compilation import internals
from tfrl.environments.native.jax_environments import forms
from tfrl.specs import array_spec


class Made(NamedTuple):
    """An environment of a library.

    Attributes:
      rules: Its rules.
      action_spec: The nest of array specs of an action.
      observation_bounds: Pairs of the least and the greatest value, in dicts and tuples
        as in the observation; None, also for a part of it, for no bounds.
      max_episode_steps: The steps after which an episode is truncated; None for no
        limit, or if only the rules know it.
      render: `render(state) -> uint8 [height, width, 3]` draws the library's state, of
        NumPy arrays, of one member; None if the library does not draw.
    """

    rules: forms.Rules
    action_spec: Any
    observation_bounds: Any = None
    max_episode_steps: int | None = None
    render: Callable[[Any], Any] | None = None


def discrete(number: int) -> array_spec.BoundedArraySpec:
    """Returns the spec of one of a number of actions."""
    return array_spec.BoundedArraySpec((), np.int32, 0, number - 1, name="action")


def continuous(size: int) -> array_spec.BoundedArraySpec:
    """Returns the spec of a vector of actions, each from -1 to 1."""
    return array_spec.BoundedArraySpec((size,), np.float32, -1, 1, name="action")


def make_gymnax(name: str) -> Made:
    """Makes an environment of gymnax; see `Made`."""
    import gymnax

    environment, params = gymnax.make(name)
    return of_gymnax(environment, params)


def of_gymnax(environment: Any, params: Any) -> Made:
    """Returns an environment with gymnax's spaces, whose parameters are given."""
    return Made(
        forms.gymnax(environment, params),
        action_of_space(environment.action_space(params)),
        bounds_of_space(environment.observation_space(params)),
        getattr(params, "max_steps_in_episode", None),
    )


def action_of_space(space: Any) -> Any:
    """Returns the spec of an action in a space of gymnax."""
    if hasattr(space, "n"):
        return discrete(int(space.n))
    low, high = (np.broadcast_to(x, space.shape) for x in (space.low, space.high))
    return array_spec.BoundedArraySpec(
        space.shape, np.float32, low, high, name="action"
    )


def bounds_of_space(space: Any) -> Any:
    """Returns the bounds of the observations in a space of gymnax."""
    spaces = getattr(space, "spaces", None)
    if isinstance(spaces, dict):
        return {name: bounds_of_space(each) for name, each in spaces.items()}
    if isinstance(spaces, tuple | list):
        return tuple(map(bounds_of_space, spaces))
    if hasattr(space, "n"):
        return 0, int(space.n) - 1
    return np.asarray(space.low), np.asarray(space.high)


def gymnax_names() -> Iterable[str]:
    """Returns the names of the environments of gymnax that can be used here."""
    import gymnax

    return gymnax.registered_envs


# Steps of an episode in all of Brax's papers and programs.
_BRAX_STEPS = 1000


def make_brax(name: str) -> Made:
    """Makes an environment of brax; see `Made`."""
    envs = _import_with_mujoco("brax.envs")
    environment = envs.get_environment(name)
    return Made(
        forms.brax(environment),
        continuous(environment.action_size),
        max_episode_steps=_BRAX_STEPS,
    )


def brax_names() -> Iterable[str]:
    """Returns the names of the environments of brax that can be used here."""
    envs = _import_with_mujoco("brax.envs")
    return internals.look_up(envs, internals.BRAX_REGISTRY)


def _import_with_mujoco(module: str) -> Any:
    """Imports a module that imports MuJoCo, which then chooses what it draws with."""
    from tfrl.environments.gymnasium import headless

    headless.prepare_mujoco()
    return importlib.import_module(module)


def make_jumanji(name: str) -> Made:
    """Makes an environment of jumanji; see `Made`."""
    import jumanji

    environment = jumanji.make(name)
    limit = getattr(environment, "time_limit", None)
    return Made(
        forms.dm_env(environment),
        _action_of_jumanji(environment.action_spec),
        _bounds_of_jumanji(environment.observation_spec),
        # Its rules end an episode themselves, at the limit or one step later.
        None if limit is None else limit + 1,
    )


def _action_of_jumanji(spec: Any) -> Any:
    return array_spec.BoundedArraySpec(
        spec.shape, spec.dtype, spec.minimum, spec.maximum, name="action"
    )


def _bounds_of_jumanji(spec: Any) -> Any:
    parts = getattr(spec, internals.JUMANJI_PARTS, None)
    if parts:
        return {name: _bounds_of_jumanji(part) for name, part in parts.items()}
    if hasattr(spec, "minimum"):
        return np.asarray(spec.minimum), np.asarray(spec.maximum)
    return None


def jumanji_names() -> Iterable[str]:
    """Returns the names of the environments of jumanji that can be used here."""
    import jumanji

    return jumanji.registered_environments()


_CRAFTAX = ("Symbolic", "Pixels", "Classic-Symbolic", "Classic-Pixels")
_TILE = 16  # The pixels of a cell in pictures.


def make_craftax(name: str) -> Made:
    """Makes an environment of craftax; see `Made`."""
    import jax

    # It prints which textures it reads.
    with contextlib.redirect_stdout(io.StringIO()):
        from craftax.craftax_env import make_craftax_env_from_name

        if "Classic" in name:
            from craftax.craftax_classic import renderer
        else:
            from craftax.craftax import renderer
        environment = make_craftax_env_from_name(name, auto_reset=False)
    params = environment.default_params
    # It has one end for a death and for the limit, which is a truncation here.
    without_limit = params.replace(max_timesteps=np.iinfo(np.int32).max)
    return of_gymnax(environment, without_limit)._replace(
        max_episode_steps=params.max_timesteps,
        render=jax.jit(renderer.make_craftax_pixel_renderer(_TILE)),
    )


def craftax_names() -> Iterable[str]:
    """Returns the names of the environments of craftax that can be used here."""
    return [f"Craftax-{kind}-v1" for kind in _CRAFTAX]


_PIXELS = 4  # The pixels in place of one of NAVIX's small pictures.


def make_navix(name: str) -> Made:
    """Makes an environment of navix; see `Made`."""
    import jax
    import navix
    from navix.entities import EntityIds
    from navix.rendering.cache import RenderingCache

    environment = navix.make(name)
    no_pictures = RenderingCache(np.zeros(0, np.uint8))

    def observed(time_step: Any) -> tuple[Any, Any]:
        # Without a picture of each cell in the state, which only films need.
        state = time_step.state.replace(cache=no_pictures)
        return time_step.replace(state=state), time_step.observation

    def reset(key: Any) -> tuple[Any, Any]:
        return observed(environment.reset(key))

    def step(key: Any, time_step: Any, action: Any) -> forms.Step:
        del key  # The state has one.
        after = environment._step(time_step, action)  # Its `step` resets by itself.
        ends = after.is_termination(), after.is_truncation()
        return forms.Step(*observed(after), after.reward, *ends)

    @jax.jit
    def render(time_step: Any) -> Any:
        state = time_step.state
        pictures = RenderingCache.init(state.grid)
        picture = navix.observations.rgb(state.replace(cache=pictures))
        return picture.repeat(_PIXELS, 0).repeat(_PIXELS, 1)

    return Made(
        forms.Rules(reset, step, draws=False),
        discrete(len(environment.action_set)),
        # Its space ends at 8, and the player is 10.
        (0, int(EntityIds.PLAYER)),
        environment.max_steps,
        render,
    )


def navix_names() -> Iterable[str]:
    """Returns the names of the environments of navix that can be used here."""
    import navix

    return navix.registry()


def make_xland(name: str) -> Made:
    """Makes an environment of xland; see `Made`."""
    import xminigrid
    from xminigrid.core import constants

    environment, params = xminigrid.make(name)

    def reset(key: Any) -> tuple[Any, Any]:
        time_step = environment.reset(params, key)
        return time_step, time_step

    def step(state: Any, action: Any) -> tuple[Any, Any]:
        time_step = environment.step(params, state, action)
        return time_step, time_step

    return Made(
        forms.dm_env(types.SimpleNamespace(reset=reset, step=step)),
        discrete(environment.num_actions(params)),
        # Tiles and colours.
        (0, (constants.NUM_TILES - 1, constants.NUM_COLORS - 1)),
        params.max_steps,
        lambda time_step: environment.render(params, time_step),
    )


def xland_names() -> Iterable[str]:
    """Returns the names of the environments of xland that can be used here."""
    import xminigrid

    # The others have neither goal nor rules before one chooses them.
    names = xminigrid.registered_environments()
    return [name for name in names if name.startswith("MiniGrid-")]


_MINATAR = "minatar-"
_OF_MORE_PLAYERS = ("bridge_bidding", "mahjong", "sparrow_mahjong")


def make_pgx(name: str) -> Made:
    """Makes an environment of pgx; see `Made`."""
    import pgx

    environment = pgx.make(name)
    # All actions of MinAtar's games are legal.
    has_mask = not name.startswith(_MINATAR)
    is_game = environment.num_players > 1

    def observed(state: Any) -> tuple[Any, Any]:
        if not has_mask:
            return state, state.observation
        mask = state.legal_action_mask
        player = {"player": state.current_player} if is_game else {}
        seen = {"observation": state.observation, "action_mask": mask, **player}
        return state, seen

    def reset(key: Any) -> tuple[Any, Any]:
        return observed(environment.init(key))

    def step(key: Any, state: Any, action: Any) -> forms.Step:
        after = environment.step(state, action, key)
        reward, *_ = after.rewards  # Of the player who learns.
        return forms.Step(*observed(after), reward, after.terminated, after.truncated)

    has_cells = len(environment.observation_shape) == 3
    return Made(
        forms.Rules(reset, step),
        discrete(environment.num_actions),
        render=(lambda state: _draw_channels(np.asarray(state.observation) > 0))
        if has_cells
        else None,
    )


def _draw_channels(cells: np.ndarray) -> np.ndarray:
    """Draws bools `[height, width, channels]`: a colour for a cell's last channel."""
    number = cells.shape[-1]
    # By the golden ratio, neighbours are far apart.
    hues = [colorsys.hsv_to_rgb(0.618 * i % 1, 0.7, 1.0) for i in range(number)]
    last = number - 1 - np.argmax(cells[..., ::-1], axis=-1)
    colours = np.where(cells.any(-1, keepdims=True), np.array(hues)[last], 0.0)
    picture = np.uint8(colours * 255)
    return picture.repeat(_TILE, 0).repeat(_TILE, 1)


def pgx_names() -> Iterable[str]:
    """Returns the names of the environments of pgx that can be used here."""
    import pgx

    return [name for name in pgx.available_envs() if name not in _OF_MORE_PLAYERS]


def make_jaxmarl(name: str) -> Made:
    """Makes an environment of jaxmarl, with a dimension of agents; see `Made`.

    Raises:
      ValueError: Its agents see or do different things.
    """
    import jax
    import jax.numpy as jnp

    environment = _jaxmarl("jaxmarl").make(name)
    agents = list(environment.agents)
    observed, actions = (
        [_text_of_space(find(agent)) for agent in agents]
        for find in (environment.observation_space, environment.action_space)
    )
    if len({*observed}) > 1 or len({*actions}) > 1:
        raise ValueError(
            f"environment: got 'jaxmarl/{name}', whose agents differ: they see "
            f"{', '.join(observed)} and do {', '.join(actions)}; one policy acts for "
            "all here, so choose an environment of equal agents."
        )
    masks = environment.get_avail_actions
    try:
        jax.eval_shape(lambda key: masks(environment.reset(key)[1]), jax.random.key(0))
        has_mask = True
    except (NotImplementedError, AttributeError):
        has_mask = False
    limit = getattr(environment, "max_steps", None)

    def stack(by_agent: Any) -> Any:
        return jnp.stack([by_agent[agent] for agent in agents])

    def seen(state: Any, observation: Any, rewards: Any) -> Any:
        mask = {"action_mask": stack(masks(state)) > 0} if has_mask else {}
        return {"observation": stack(observation), "rewards": rewards, **mask}

    def reset(key: Any) -> tuple[Any, Any]:
        observation, state = environment.reset(key)
        return state, seen(state, observation, jnp.zeros(len(agents)))

    def step(key: Any, state: Any, action: Any) -> forms.Step:
        chosen = dict(zip(agents, action, strict=True))
        observation, after, rewards, ends, _ = environment.step_env(key, state, chosen)
        counts = (getattr(after, x, None) for x in ("step", "time"))
        count = next((x for x in counts if x is not None), None)
        is_over, is_cut = ends["__all__"], jnp.array(False)
        if limit is not None and count is not None:
            is_cut = is_over & (count >= limit)
        each = jnp.float32(stack(rewards))
        return forms.Step(
            after,
            seen(after, observation, each),
            each.sum(),
            is_over & ~is_cut,
            is_cut,
        )

    one = action_of_space(environment.action_space(agents[0]))
    return Made(
        forms.Rules(reset, step),
        array_spec.BoundedArraySpec(
            (len(agents), *one.shape), one.dtype, one.minimum, one.maximum, one.name
        ),
    )


def _text_of_space(space: Any) -> str:
    return f"{getattr(space, 'n', '')}{getattr(space, 'shape', '')}"


def jaxmarl_names() -> Iterable[str]:
    """Returns the names of the environments of jaxmarl."""
    return _jaxmarl("jaxmarl.registration").registered_envs


def _jaxmarl(module: str) -> Any:
    """Imports a module of jaxmarl, which prints what it cannot import."""
    with contextlib.redirect_stdout(io.StringIO()):
        return importlib.import_module(module)


def make_playground(name: str) -> Made:
    """Makes an environment of playground; see `Made`."""
    registry = _import_with_mujoco("mujoco_playground").registry
    # Its default is "warp", kernels for CUDA that only JAX can call.
    environment = registry.load(name, config_overrides={"impl": "jax"})
    return Made(
        forms.brax(environment),
        continuous(environment.action_size),
        max_episode_steps=registry.get_default_config(name).episode_length,
        render=_mujoco_renderer(environment.mj_model),
    )


def playground_names() -> Iterable[str]:
    """Returns the names of the environments of playground that can be used here."""
    return _import_with_mujoco("mujoco_playground").registry.ALL_ENVS


def _mujoco_renderer(model: Any) -> Callable[[Any], Any]:
    """Returns a function that draws a state which has MuJoCo's `data`."""
    import mujoco

    renderer = functools.cache(lambda: mujoco.Renderer(model))

    def render(state: Any) -> Any:
        data = mujoco.MjData(model)
        for name in ("qpos", "qvel", "mocap_pos", "mocap_quat"):
            getattr(data, name)[:] = getattr(state.data, name)
        mujoco.mj_forward(model, data)
        renderer().update_scene(data)
        return renderer().render()

    return render
