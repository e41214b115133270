"""The libraries' environments as they step in JAX alone, for comparisons.

Each function takes a name without the library's prefix, and returns `(reset, step)` of
one member, written with the library's own names and without anything of tfrl:
`reset(key) -> (state, observation)` and `step(key, state, action) -> (state,
observation, reward, terminated, truncated)`.
"""

import contextlib
import io


def gymnax(name):
    import gymnax

    environment, params = gymnax.make(name)

    def step(key, state, action):
        observation, state, reward, terminated, _ = environment.step_env(
            key, state, action, params
        )
        truncated = environment.is_truncated(state, params)
        return state, observation, reward, terminated, truncated

    return lambda key: environment.reset_env(key, params)[::-1], step


def brax(name):
    from brax import envs

    return _of_states(envs.get_environment(name))


def jumanji(name):
    import jumanji

    environment = jumanji.make(name)

    def reset(key):
        state, time_step = environment.reset(key)
        return state, time_step.observation

    def step(key, state, action):
        state, time_step = environment.step(state, action)
        is_terminal = time_step.discount == 0
        ends = time_step.last() & is_terminal, time_step.last() & ~is_terminal
        return state, time_step.observation, time_step.reward, *ends

    return reset, step


def craftax(name):
    with contextlib.redirect_stdout(io.StringIO()):
        from craftax.craftax_env import make_craftax_env_from_name

        environment = make_craftax_env_from_name(name, auto_reset=False)
    params = environment.default_params

    def step(key, state, action):
        observation, state, reward, done, _ = environment.step(
            key, state, action, params
        )
        return state, observation, reward, done, False

    return lambda key: environment.reset(key, params)[::-1], step


def navix(name):
    import navix
    from navix.rendering.cache import RenderingCache

    environment = navix.make(name)

    def seen(time_step):
        # The pictures of the cells are no part of the state in tfrl.
        state = time_step.state.replace(cache=None)
        return time_step.replace(state=state), time_step.observation

    def step(key, time_step, action):
        pictures = RenderingCache.init(time_step.state.grid)
        state = time_step.state.replace(cache=pictures)
        after = environment.step(time_step.replace(state=state), action)
        ends = after.is_termination(), after.is_truncation()
        return *seen(after), after.reward, *ends

    return lambda key: seen(environment.reset(key)), step


def xland(name):
    import xminigrid

    environment, params = xminigrid.make(name)

    def reset(key):
        time_step = environment.reset(params, key)
        return time_step, time_step.observation

    def step(key, time_step, action):
        after = environment.step(params, time_step, action)
        is_terminal = after.discount == 0
        ends = after.last() & is_terminal, after.last() & ~is_terminal
        return after, after.observation, after.reward, *ends

    return reset, step


def pgx(name):
    import pgx

    environment = pgx.make(name)

    def seen(state):
        if name != "2048":
            return state, state.observation
        mask = state.legal_action_mask
        return state, {"observation": state.observation, "action_mask": mask}

    def step(key, state, action):
        after = environment.step(state, action, key)
        return *seen(after), after.rewards[0], after.terminated, after.truncated

    return lambda key: seen(environment.init(key)), step


def playground(name):
    from mujoco_playground import registry

    return _of_states(registry.load(name, config_overrides={"impl": "jax"}))


def _of_states(environment):
    def reset(key):
        state = environment.reset(key)
        return state, state.obs

    def step(key, state, action):
        state = environment.step(state, action)
        return state, state.obs, state.reward, state.done > 0, False

    return reset, step
