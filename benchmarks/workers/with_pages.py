"""Measures the pages of `examples.pages`, and tfrl's loops with a page's settings."""

from __future__ import annotations

import dataclasses
import importlib
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

import examples  # noqa: F401  Sets the variables that TensorFlow reads.
from benchmarks.workers import making, serving
from tfrl.algorithms import registry


def dqn_page(**settings: Any) -> serving.Task:
    """Makes the page's program."""
    return _off_policy_page("dqn", settings)


def dqn_loop(**settings: Any) -> serving.Task:
    """Makes the loop of double DQN on a native environment."""
    return _loop("ddqn", settings, _dqn_fields)


def sac_page(**settings: Any) -> serving.Task:
    """Makes the page's program."""
    return _off_policy_page("sac", settings)


def sac_loop(**settings: Any) -> serving.Task:
    """Makes the loop of SAC on a native environment."""
    return _loop("sac", settings, _sac_fields)


def ppo_page(**settings: Any) -> serving.Task:
    """Makes the page's program."""
    page, chosen = _page("ppo", settings)
    program = page.Ppo(chosen)
    return _task(lambda count: program.run(tf.constant(count)))


def ppo_loop(**settings: Any) -> serving.Task:
    """Makes the loop of PPO on a native environment."""
    return _loop("ppo", settings, _ppo_fields)


def _off_policy_page(name: str, settings: dict[str, Any]) -> serving.Task:
    page, chosen = _page(name, settings)
    program = getattr(page, name.capitalize())(chosen)
    program.run(tf.constant(chosen.initial_steps), learns=False)
    return _task(lambda count: program.run(tf.constant(count), learns=True))


def _page(name: str, settings: dict[str, Any]) -> tuple[Any, Any]:
    """Returns a page and its settings, some of them given."""
    page = importlib.import_module(f"examples.pages.{name}")
    return page, page.Settings(**settings)


def _loop(
    name: str, settings: dict[str, Any], fields: Callable[[Any], dict[str, Any]]
) -> serving.Task:
    """Makes a loop."""
    _, chosen = _page("dqn" if name == "ddqn" else name, settings)
    # Most fields of the page's settings have the names of the algorithm's.
    own = registry.find(name).setting_fields()
    given = {k: x for k, x in dataclasses.asdict(chosen).items() if k in own}
    given |= fields(chosen)
    made = making.algorithm(name, chosen.environment, True, **given)
    return _task(made.build().run)


def _dqn_fields(settings: Any) -> dict[str, Any]:
    return {
        **_replay_fields(settings),
        "fc_layer_params": settings.hidden_units,
        "n_step_update": 1,
        "final_learning_rate": 0.0,
        "final_epsilon": settings.last_epsilon,
        "epsilon_decay_iterations": settings.epsilon_steps,
    }


def _sac_fields(settings: Any) -> dict[str, Any]:
    rates = ("actor_learning_rate", "critic_learning_rate", "alpha_learning_rate")
    return {
        **_replay_fields(settings),
        **dict.fromkeys(rates, settings.learning_rate),
        "actor_fc_layer_params": settings.hidden_units,
        "critic_fc_layer_params": settings.hidden_units,
    }


def _replay_fields(settings: Any) -> dict[str, Any]:
    return {
        "initial_collect_steps": settings.initial_steps * settings.num_envs,
        "collect_steps_per_iteration": 1,
        "train_steps_per_iteration": 1,
        "target_update_tau": settings.target_tau,
    }


def _ppo_fields(settings: Any) -> dict[str, Any]:
    steps = settings.rollout_steps
    return {
        "collect_steps_per_iteration": steps,
        "minibatch_size": steps * settings.num_envs // settings.num_minibatches,
        "fc_layer_params": settings.hidden_units,
        "lambda_value": settings.gae_lambda,
        "final_clip_range": None,
        "entropy_regularization": settings.entropy_weight,
        "value_loss_weight": settings.value_weight,
        "max_gradient_norm": settings.gradient_norm,
    }


def _task(run: Callable[[int], object]) -> serving.Task:
    def iterate(count: int) -> dict[str, int]:
        run(count)
        return {"iterations": count}

    return serving.Task(iterate)


if __name__ == "__main__":
    serving.serve(
        {
            "dqn_page": dqn_page,
            "dqn_loop": dqn_loop,
            "sac_page": sac_page,
            "sac_loop": sac_loop,
            "ppo_page": ppo_page,
            "ppo_loop": ppo_loop,
        },
        ["tensorflow", "keras", "numpy"],
        {"oneDNN": os.environ["TF_ENABLE_ONEDNN_OPTS"]},
    )
