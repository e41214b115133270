"""Words of other libraries, and what to write here instead.

They are those of Stable-Baselines3, RL Baselines3 Zoo, CleanRL, RLlib and Tianshou.
Constructors, methods and the command look here for a word that they do not know.

>>> from tfrl.algorithms import other_words
>>> other_words.advice("n_steps", 128, ["gamma", "collect_steps_per_iteration"])
'write collect_steps_per_iteration=128'
>>> other_words.advice("gama", 0.9, ["gamma"])
'did you mean gamma'
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn, TypeVar

# A word, and what is the same here: of several, the first one that there is.
SAME = {
    "adam_eps": "adam_epsilon",
    "alpha": "initial_alpha priority_exponent",
    "alpha_lr": "alpha_learning_rate",
    "actor_lr": "actor_learning_rate",
    "batch_size": "minibatch_size sequences_per_update",
    "beta": "importance_exponent",
    "buffer_size": "replay_capacity",
    "callback": "callbacks",
    "clip_coef": "clip_range",
    "clip_param": "clip_range",
    "clip_range_vf": "value_clip_range",
    "critic_lr": "critic_learning_rate",
    "deterministic": "greedy",
    "deterministic_actions": "greedy",
    "device_name": "device",
    "discount": "gamma",
    "discount_factor": "gamma",
    "ent_coef": "entropy_regularization initial_alpha",
    "entropy_coef": "entropy_regularization initial_alpha",
    "entropy_coeff": "entropy_regularization initial_alpha",
    "end_e": "final_epsilon",
    "env": "environment",
    "env_id": "env environment",
    "env_name": "env environment_name",
    "environment": "env",
    "epsilon_timesteps": "epsilon_decay_iterations",
    "eval_episodes": "num_eval_episodes",
    "eval_env": "evaluation_environment",
    "eval_freq": "eval_interval",
    "exploration_final_eps": "final_epsilon",
    "exploration_fraction": "epsilon_decay_iterations",
    "exploration_initial_eps": "initial_epsilon",
    "fcnet_hiddens": "fc_layer_params actor_fc_layer_params",
    "gae_lambda": "lambda_value",
    "game": "env environment",
    "gradient_clipping": "max_gradient_norm",
    "gradient_steps": "train_steps_per_iteration",
    "grad_clip": "max_gradient_norm",
    "gym_id": "env environment",
    "hidden_sizes": "fc_layer_params actor_fc_layer_params",
    "hyperparams": "config",
    "lambda": "lambda_value",
    "lambda_": "lambda_value",
    "learning_rate": "actor_learning_rate",
    "learning_starts": "initial_collect_steps",
    "load_path": "initial_run",
    "log_dir": "logdir",
    "log_folder": "logdir",
    "log_path": "logdir",
    "lr": "learning_rate actor_learning_rate",
    "max_grad_norm": "max_gradient_norm",
    "max_timesteps": "num_environment_steps",
    "n_critics": "num_critics",
    "n_envs": "num_envs",
    "n_epochs": "num_epochs",
    "n_eval_episodes": "num_eval_episodes num_episodes",
    "n_quantiles": "num_quantiles",
    "n_step": "n_step_update collect_steps_per_iteration",
    "n_steps": "n_step_update collect_steps_per_iteration",
    "n_timesteps": "num_environment_steps",
    "n_trials": "trials",
    "net_arch": "fc_layer_params actor_fc_layer_params",
    "norm_adv": "normalize_advantages",
    "normalize_advantage": "normalize_advantages",
    "num_actors": "num_envs",
    "num_env": "num_envs",
    "num_env_runners": "num_actors num_envs",
    "num_environment_steps": "num_iterations",
    "num_frames": "num_environment_steps",
    "num_sgd_iter": "num_epochs",
    "num_steps": "collect_steps_per_iteration",
    "num_timesteps": "num_environment_steps",
    "num_workers": "num_actors num_envs",
    "output_dir": "logdir",
    "policy_delay": "actor_update_period",
    "policy_lr": "actor_learning_rate",
    "progress_bar": "progress",
    "q_lr": "critic_learning_rate",
    "rollout_fragment_length": "collect_steps_per_iteration",
    "save_freq": "checkpoint_interval",
    "save_path": "logdir",
    "sgd_minibatch_size": "minibatch_size",
    "start_e": "initial_epsilon",
    "target_network_frequency": "target_update_period",
    "target_network_update_freq": "target_update_period",
    "target_update_interval": "target_update_period",
    "tau": "target_update_tau",
    "tensorboard_log": "logdir",
    "timesteps": "num_environment_steps",
    "total_steps": "num_environment_steps",
    "total_timesteps": "num_environment_steps",
    "train_batch_size": "batch_size minibatch_size",
    "train_freq": "collect_steps_per_iteration",
    "train_frequency": "collect_steps_per_iteration",
    "trained_agent": "initial_run",
    "update_epochs": "num_epochs",
    "value_coef": "value_loss_weight",
    "vf_coef": "value_loss_weight",
    "vf_loss_coeff": "value_loss_weight",
}
_ALL_RATES = (
    "write actor_learning_rate=..., critic_learning_rate=... and, for SAC, "
    "alpha_learning_rate=...: one rate elsewhere is all of them"
)
_IN_UPDATES = "write target_update_period=..., which counts updates, not steps"
# Words with a value of another kind or unit, and what to do instead.
_LINES = {
    "action_noise": "give exploration=..., a function that makes the collect policy",
    "anneal_lr": "write final_learning_rate=0.0, or None for a constant rate",
    "callback": "write callbacks=[...], a list of train.Callback",
    "clip_vloss": "write value_clip_range=..., the clip range, or 0 for none",
    "config": "write each setting by its name, such as {0}(environment, gamma=0.99)",
    "ent_coef initial_alpha": "the temperature is learned, from initial_alpha=1.0 on; "
    "a fixed one is initial_alpha=..., alpha_learning_rate=0",
    "env_config": "give a function that makes the environment, "
    "{0}(lambda: MyEnv(env_config))",
    "episode_start": "give state=None at the beginning of an episode",
    "epsilon_timesteps": "write epsilon_decay_iterations=..., so many iterations",
    "eval_freq": "write eval_interval=..., in iterations",
    "exploration_fraction": "write epsilon_decay_iterations=..., so many iterations",
    "framework": "leave it out: there is TensorFlow alone",
    "gradient_steps": "write train_steps_per_iteration=..., of which -1 elsewhere is "
    "collect_steps_per_iteration times num_envs",
    "learning_rate actor_learning_rate": _ALL_RATES,
    "log_interval": "the setting log_interval of the constructor counts iterations",
    "lr actor_learning_rate": _ALL_RATES,
    "num_minibatches": "write minibatch_size=..., the frames in each of them",
    "observation_and_action_constraint_splitter": "write agent_arguments="
    "{{'observation_and_action_constraint_splitter': ...}}",
    "policy": "write {0}(environment): the observations choose the layers; "
    "fc_layer_params=(64, 64) and network=... choose others",
    "policy_kwargs": "write fc_layer_params=(64, 64) for net_arch, activation='tanh' "
    "for activation_fn, and network=... for your own layers",
    "replay_buffer_class": "give replay_buffer=...; goals_per_step=4 is hindsight",
    "reset_num_timesteps": "leave it out: each learn continues the training",
    "save_freq": "write checkpoint_interval=..., in iterations",
    "target_network_frequency": _IN_UPDATES,
    "target_network_update_freq": _IN_UPDATES,
    "target_update_interval": _IN_UPDATES,
    "tb_log_name": "give logdir='logs/run' to the constructor, which names the run",
    "tensorboard_log": "write logdir='logs/run': TensorBoard's files are in it, too",
    "train_batch_size minibatch_size": "write collect_steps_per_iteration=..., which, "
    "times num_envs, are the frames of an iteration",
    "use_sde": "write gsde_sample_freq=..., the steps for which the noise, which "
    "depends on the state, stays the same",
    "verbose": "leave it out: progress=False, of learn, shows nothing",
    "vf_coef": "write value_loss_weight=..., half as large as CleanRL's",
}
# The first argument of Stable-Baselines3's constructors.
_POLICIES = (
    "MlpPolicy",
    "CnnPolicy",
    "MultiInputPolicy",
    "MlpLstmPolicy",
    "CnnLstmPolicy",
    "MultiInputLstmPolicy",
)
# Methods elsewhere, and what to write here; {0} is the class of the algorithm.
METHODS = {
    "collect_rollouts": "{0}(...).learn(steps)",
    "compute_single_action": "{0}(...).predict(observation)",
    "fit": "{0}(...).learn(steps)",
    "get_env": "the attribute environment",
    "get_parameters": "agent.variables()",
    "get_vec_normalize_env": "the attribute agent, whose observation_normalizer it is",
    "load_replay_buffer": "logdir=..., whose checkpoints hold it",
    "policy_class": "the attribute policy",
    "restore": "tfrl.load(folder)",
    "save_replay_buffer": "logdir=..., whose checkpoints hold it",
    "set_env": "tfrl.load(folder, environment)",
    "set_logger": "logdir=..., or learn(callbacks=[...])",
    "set_parameters": "train.load_weights(agent, folder), or initial_run=folder",
    "test": "{0}(...).evaluate(num_episodes)",
    "train": "{0}(...).learn(steps)",
}

Function = TypeVar("Function", bound=Callable[..., Any])


def same(word: str, known: Collection[str]) -> str | None:
    """Returns what is the same here as a word elsewhere, or None.

    Args:
      word: The word.
      known: The words that there are here.
    """
    return next((x for x in SAME.get(word, "").split() if x in known), None)


def advice(word: str, value: Any, known: Collection[str], of: str = "") -> str:
    """Returns what to write instead of an argument that is not known; perhaps "".

    Args:
      word: The argument's name.
      value: Its value.
      known: The names of the arguments that there are.
      of: The name of the algorithm's class.
    """
    meant = same(word, known)
    line = _LINES.get(f"{word} {meant}") or _LINES.get(word)
    if line is not None:
        return line.format(of)
    if meant is not None:
        return f"write {meant}={tuple(value) if isinstance(value, list) else value!r}"
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]}" if near else ""


def refuse_policy(of: str, given: Sequence[Any]) -> None:
    """Raises a TypeError if a constructor gets arguments as elsewhere.

    Args:
      of: The name of the algorithm's class.
      given: The arguments by position, of which the class takes one.
    """
    is_policy = bool(given) and isinstance(given[0], str) and given[0] in _POLICIES
    if len(given) < 2 and not is_policy:
        return
    environment = given[1] if is_policy and len(given) > 1 else given[0]
    name = repr(environment) if isinstance(environment, str) else "environment"
    name = "environment" if environment in _POLICIES else name.replace("'", '"')
    wanted = "the environment, and all else by name"
    why = ", whose observations choose the layers" if is_policy else ""
    raise TypeError(
        f"{of}: got {', '.join(map(str, given))}, expected {wanted}: write "
        f"{of}({name}){why}."
    )


def explained(method: Function) -> Function:
    """Lets a method of an algorithm explain keywords of other libraries."""
    known = list(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def checked(self: Any, *arguments: Any, **keywords: Any) -> Any:
        for word, value in keywords.items():
            if word not in known:
                told = advice(word, value, known, type(self).__name__)
                if same(word, known) == known[0]:
                    told = f"write {method.__name__}({value!r})"
                raise TypeError(
                    f"{method.__name__}: got an unknown argument {word!r}; "
                    f"{told or 'expected some of ' + ', '.join(known)}."
                )
        return method(self, *arguments, **keywords)

    made: Function = checked  # type: ignore[assignment]
    return made


def method_elsewhere(of: str, name: str) -> str:
    """Returns the text of the error for a method that is not here.

    Args:
      of: The name of the algorithm's class.
      name: The method's name.
    """
    told = METHODS.get(name, "").format(of)
    return f"{of} has no {name!r}" + (f"; write {told}." if told else ".")


class Loading:
    """The name `load` of algorithms, which other libraries load by."""

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        """Raises the AttributeError."""
        raise AttributeError(
            f"{owner.__name__} has no 'load', since a folder names its algorithm; "
            'write tfrl.load("folder").'
        )
