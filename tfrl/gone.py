"""Names in TF-Agents' modules that are gone, and what to write instead.

The rows are those of the guide's page for users of TF-Agents, "Names that are gone". A
finder adds the explanations to the modules and classes when these are imported.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

# A module, its names that are gone, separated by spaces, and what to write instead.
_ROWS = (
    ("policies.tf_policy", "Base", "tf_policy.TFPolicy"),
    ("policies.py_policy", "Base", "py_policy.PyPolicy"),
    ("policies", "policy_step", "tfrl.trajectories.policy_step"),
    (
        "environments",
        "time_step trajectory",
        "tfrl.trajectories.time_step, tfrl.trajectories.trajectory",
    ),
    ("metrics", "metric_utils", "tfrl.eval.metric_utils"),
    (
        "agents.dqn",
        "q_network q_rnn_network",
        "tfrl.networks.q_network, tfrl.networks.q_rnn_network",
    ),
    (
        "agents.dqn.dqn_agent",
        "element_wise_squared_loss element_wise_huber_loss",
        "common.element_wise_squared_loss, common.element_wise_huber_loss",
    ),
    (
        "agents.qtopt.qtopt_agent",
        "compute_td_targets",
        "tfrl.agents.dqn.dqn_agent.compute_td_targets",
    ),
    (
        "policies.qtopt_cem_policy",
        "convert_nest_lists_to_np_array",
        "tf.nest.map_structure_up_to with numpy.asarray",
    ),
    (
        "utils.eager_utils",
        (
            "np_function dataset_iterator get_next Future "
            "future_in_eager_mode has_self_cls_arg is_unbound"
        ),
        "tf.numpy_function, iter and next",
    ),
    (
        "utils.eager_utils",
        "create_train_step create_train_op",
        "tf.GradientTape, and an optimizer's apply_gradients",
    ),
    ("utils.common", "periodically EagerPeriodically", "common.Periodically"),
    (
        "utils.common",
        "function_in_tf1 set_default_tf_function_parameters",
        "common.function with arguments",
    ),
    (
        "utils.common",
        (
            "has_eager_been_enabled in_legacy_tf1 check_tf1_allowed "
            "resource_variables_enabled initialize_uninitialized_variables "
            "join_scope MISSING_RESOURCE_VARIABLES_ERROR tf_agents_gauge"
        ),
        "nothing: TensorFlow 1 is gone",
    ),
    (
        "utils.common",
        "assert_members_are_not_overridden",
        "the base classes refuse such subclasses themselves",
    ),
    (
        "agents.ppo.ppo_agent",
        "PPOAgent.update_observation_normalizer PPOAgent.update_reward_normalizer",
        "update_normalizers(frames)",
    ),
    (
        "agents.ppo.ppo_utils",
        "make_timestep_mask get_metric_observers get_learning_rate",
        (
            "ppo_utils.make_trajectory_mask; observers take trajectories; "
            'agent.diagnose()["learning_rate"]'
        ),
    ),
    (
        "specs.tensor_spec",
        "to_placeholder to_placeholder_with_default to_nest_placeholder",
        "the specs themselves: tf.function(input_signature=...) takes them",
    ),
    (
        "metrics.py_metric",
        "run_summaries PyMetric.summary_placeholder PyMetric.summary_op",
        "PyMetric.tf_summaries",
    ),
    (
        "keras_layers.dynamic_unroll_layer",
        "DynamicUnroll.updates",
        "nothing: Keras 3 has no updates",
    ),
    (
        "keras_layers.rnn_wrapper",
        "RNNWrapper.updates",
        "nothing: Keras 3 has no updates",
    ),
    (
        "keras_layers.squashed_outer_wrapper",
        "SquashedOuterWrapper.updates",
        "nothing: Keras 3 has no updates",
    ),
    (
        "policies.utils",
        (
            "populate_policy_info set_bandit_policy_type has_bandit_policy_type "
            "has_chosen_arm_features bandit_policy_uniform_mask "
            "create_chosen_arm_features_info_spec "
            "check_no_mask_with_arm_features get_model_index"
        ),
        "a subclass of bandits.policies.BanditPolicy, which does it",
    ),
    (
        "bandits.agents.greedy_reward_prediction_agent",
        (
            "GreedyRewardPredictionAgent.per_example_reward_loss "
            "GreedyRewardPredictionAgent.compute_summaries"
        ),
        "the functions of agents.reward_losses; train writes the summaries",
    ),
    (
        "bandits.agents.greedy_multi_objective_neural_agent",
        "GreedyMultiObjectiveNeuralAgent.compute_summaries",
        "nothing: train writes the summaries",
    ),
    (
        "bandits.agents.linear_bandit_agent",
        "LinearBanditAgent.compute_summaries",
        "nothing: train writes the summaries",
    ),
    (
        "bandits.agents.neural_linucb_agent",
        (
            "NeuralLinUCBAgent.compute_loss_using_reward_layer "
            "NeuralLinUCBAgent.compute_loss_using_linucb "
            "NeuralLinUCBAgent.compute_loss_using_linucb_distributed "
            "NeuralLinUCBAgent.compute_summaries"
        ),
        "train, and loss for the loss alone",
    ),
    (
        "bandits.agents.examples.v2.trainer",
        "get_replay_buffer get_training_loop_fn",
        "trainer.train, or a BanditReplayBuffer and a driver of your own",
    ),
    (
        "bandits.agents.utils",
        "process_experience_for_neural_agents",
        "a subclass of bandits.agents.BanditAgent, which has _rows",
    ),
    (
        "bandits.multi_objective.multi_objective_scalarizer",
        "ScalarFloat ScalarizerTraceType",
        "float; a loop that is traced keeps the parameters that it had",
    ),
    (
        "bandits.policies.ranking_policy",
        (
            "PenalizedPlackettLuce "
            "CosinePenalizedPlackettLuce "
            "NoPenaltyPlackettLuce "
            "DescendingScoreSampler"
        ),
        "the policies of these names, which draw the items themselves",
    ),
    ("typing.types", "NestedPlaceHolder", "nothing: there are no placeholders"),
    ("experimental", "train", "tfrl.train"),
    (
        "environments.gymnasium_wrapper",
        "GymnasiumWrapper.terminated GymnasiumWrapper.truncated",
        "the last time step: its discount is 0 at a termination only",
    ),
    (
        "drivers.dynamic_step_driver",
        "is_bandit_env",
        "environment.is_bandit",
    ),
    (
        "drivers.dynamic_episode_driver",
        "is_bandit_env",
        "environment.is_bandit",
    ),
    (
        "system.system_multiprocessing",
        "GinStateSaver OpenAIGymStateSaver",
        (
            "your own StateSaver; Gymnasium's registry is carried to the "
            "workers by itself"
        ),
    ),
    (
        "utils.test_utils",
        "test_src_dir_path TestCase.initialize_v1_variables",
        "nothing: a variable has its value when it is made",
    ),
)
_TEXTS = {
    (f"tfrl.{module}", name): f"it is gone; instead: {instead}."
    for module, names, instead in _ROWS
    for name in names.split()
}
# Maps the full names in modules to the texts that explain their absence.
NAMES = {
    f"{module}.{name}": text
    for (module, name), text in _TEXTS.items()
    if "." not in name
}
_MODULES = {module for module, _ in _TEXTS}


def pairs() -> list[tuple[str, list[str], list[str]]]:
    """Returns the rows that have as many words to write as names that are gone.

    Each is a module, its names, and the words, which are names if they are in a module.
    """
    rows = [
        (f"tfrl.{module}", names.split(), instead.split(", "))
        for module, names, instead in _ROWS
    ]
    return [row for row in rows if len(row[1]) == len(row[2])]


class _Gone:
    """An attribute of a class, which raises an AttributeError that explains it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        raise AttributeError(self._text)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that once had more names, and explains these in them.

    It explains after the import, since in the text of a module a `__getattr__` would
    hide misspelt names from type checkers.
    """

    def __init__(self, explained: Callable[[str], Any]) -> None:
        """Creates the finder.

        Args:
          explained: See `absent.explained`.
        """
        self._explained = explained

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the usual spec of such a module, and None for others."""
        if fullname not in _MODULES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        loader = None if spec is None else spec.loader
        if loader is not None:
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self._explain(module)

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _explain(self, module: ModuleType) -> None:
        for (place, name), text in _TEXTS.items():
            owner, _, attribute = name.rpartition(".")
            if place == module.__name__ and owner:
                full = f"{place}.{name}: {text}"
                setattr(getattr(module, owner), attribute, _Gone(full))
        if not hasattr(module, "__path__"):
            get, paths = self._explained(module.__name__)
            module.__getattr__ = get  # type: ignore[method-assign]
            module.__path__ = paths
