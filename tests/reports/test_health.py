"""The rules of health, on rows made by hand."""

import re

import numpy as np
import pytest

from tfrl.algorithms import registry
from tfrl.reports import health
from tfrl.reports.evidence import Evidence

# A run in which no rule finds anything: twelve rows of a DQN that learns, with an
# evaluation in each.
_SETTINGS = {
    "gamma": 0.99,
    "batch_size": 64,
    "num_environment_steps": 12_000,
    "initial_collect_steps": 1_000,
    "max_gradient_norm": 0.5,
}


def healthy_rows():
    rows = []
    for i in range(12):
        rows.append(
            {
                "iteration": 1_000 * i,
                "environment_steps": 1_000 * (i + 1),
                "train_steps": 1_000 * i,
                "average_return": 10.0 * i,
                "evaluation_return": 11.0 * i,
                "evaluation_lengths": [50 + i, 60 + 2 * i, 70 + 3 * i],
                "evaluation_terminated": [True, True, True],
                "predicted_return": 9.0 * i,
                "realized_return": 9.5 * i,
                "epsilon": 1 - i / 12,
                "entropy": 0.69 - 0.03 * i,
                "gradient_norm": 3.0,
                "weights_norm": 10.0,
                "weights_change": 1e-4,
                "target_weights_change": 1e-4,
                "td_error": 1.0,
                "dormant_units": 0.1,
                "dormant_layer": 0.2,
                "reward_size": 1.0,
                "observation_size": 1.0,
                "approx_kl": 0.01,
                "clip_fraction": 0.1,
                "explained_variance": 0.05 * i,
                "positive_advantages": 0.5,
                "replay_size": 1_000 * (i + 1),
            }
        )
    return rows


def check(**arguments):
    """Returns the rules that find something after columns have changed."""
    return [each.rule for each in health.check(evidence(**arguments))]


def evidence(changes=(), settings=(), **columns):
    """Returns the run after columns have changed."""
    rows = healthy_rows()
    for name, values in columns.items():
        for row, value in zip(rows, np.broadcast_to(values, len(rows)), strict=True):
            row[name] = value.item()
    for row in rows:
        row.update(dict(changes))
    return Evidence(rows, {**_SETTINGS, **dict(settings)})


def test_nothing_is_found_in_a_healthy_run():
    assert check() == []


def stuck(facts, **changes):
    """Returns columns of a run whose every episode has the return 10."""
    return {
        "changes": {
            "environment": facts,
            "evaluation_returns": [10.0] * 3,
            **changes,
        },
        "evaluation_return": 10.0,
        "average_return": 10.0,
    }


FINDS = [
    ("values", {"predicted_return": 400.0}),
    ("values", {"predicted_return": 250.0}),
    ("values", {"predicted_return": 1e6, "settings": {"gamma": 1.0}}),
    (
        "entropy",
        {
            "entropy": [0.6, *[0.001] * 11],
            "evaluation_return": 9.0,
            "average_return": 9.0,
        },
    ),
    ("entropy", {"entropy": -12.0, "entropy_target": -1.0}),
    ("exploration", {"epsilon": 0.0, "settings": {"initial_collect_steps": 64}}),
    ("exploration", {"epsilon": 0.9}),
    ("gradients", {"gradient_norm": 1e-9}),
    ("gradients", {"gradient_norm": 5e4}),
    ("units", {"dormant_units": 0.7}),
    ("units", {"dormant_layer": 1.0}),
    ("rewards", {"reward_size": 1e-6}),
    ("rewards", {"reward_size": 1e5}),
    ("rewards", {"settings": {"vmin": 0.0, "vmax": 10.0}}),
    ("targets", {"target_weights_change": 0.0}),
    ("policy steps", {"clip_fraction": 0.7}),
    ("policy steps", {"approx_kl": 0.5}),
    ("policy steps", {"approx_kl": 0.0, "clip_fraction": 0.0}),
    ("critic", {"explained_variance": 0.0}),
    ("advantages", {"positive_advantages": 1.0}),
    ("advantages", {"positive_advantages": 0.0}),
    ("replay", {"replay_size": 128}),
    ("replay", {"train_steps": 400 * np.arange(12) * 1_000}),
    ("observations", {"observation_size": 1e4}),
    ("observations", {"observation_size": 1e-5}),
    ("actions", {"actions_at_bound": 0.99}),
    (
        "clock",
        {"changes": {"evaluation_lengths": [30, 100, 100]}},
    ),
    ("evaluation", {"evaluation_return": 5.0}),
    ("evaluation", {"evaluation_return": [*range(0, 110, 10), 5]}),
    # Facts of the environment, which an untrained evaluation of 10 goes before.
    ("observations", stuck({"observation_changes": False})),
    ("observations", stuck({"observation_correlation": 0.1})),
    ("actions", stuck({"actions_matter": False})),
    ("actions", stuck({"own_bounds_reached": 0.25})),
    ("actions", stuck({"dead_actions": ["lowest"]})),
    ("actions", {**stuck({}), "actions_reach": 0.2 + 0.01 * (np.arange(12) % 5)}),
    ("actions", {"actions_reach": 0.5}),
    ("rewards", {"settings": {"own_parts": "reward_scale_factor=-1.0"}}),
    (
        "rewards",
        {
            **stuck({"reward_threshold": 475.0, "reward_range": [-1.0, -1.0]}),
            "evaluation_return": -9.0,
            "average_return": -9.0,
        },
    ),
    ("rewards", stuck({}, evaluation_terminated=[False] * 3)),
    ("clock", stuck({"time_limit": 500}, evaluation_lengths=[3, 3, 3])),
    ("learning", stuck({}, evaluation_terminated=[False] * 3)),
    ("learning rate", {"settings": {"critic_learning_rate": 1.0}}),
    ("learning rate", {"settings": {"learning_rate": 1e-9}}),
    (
        "discount",
        {
            "changes": {"evaluation_terminated": [False] * 3},
            "settings": {"gamma": 1.0, "target_update_tau": 0.005},
        },
    ),
    (
        "discount",
        {
            **stuck({}, evaluation_lengths=[100, 100, 99]),
            "settings": {"gamma": 0.5, "target_update_tau": 0.005},
        },
    ),
    ("entropy", {"entropy": 0.69, "settings": {"entropy_regularization": 3.0}}),
    (
        "evaluation",
        {
            **stuck({"evaluation_differs": ["rewards"]}, evaluation_lengths=[9, 8, 7]),
            "average_return": [-10.0, *[-9.0] * 11],
        },
    ),
]


@pytest.mark.parametrize(("rule", "arguments"), FINDS)
def test_a_rule_finds_what_is_wrong(rule, arguments):
    assert rule in check(**arguments)


# What a remedy names that is no setting of any algorithm.
NO_SETTINGS = {"reward_scale_factor", "agent_arguments"}


@pytest.mark.parametrize("name", registry.CLASSES)
def test_remedies_name_only_settings_that_the_algorithm_has(name):
    settings = {**registry.find(name).defaults(), "algorithm": name}
    finds = {rule.name: rule.find for rule in health.RULES}
    for rule, arguments in FINDS:
        known = {**settings, **_SETTINGS, **dict(arguments.get("settings", {}))}
        problem = finds[rule](evidence(**{**arguments, "settings": known}))
        remedy = problem.remedy if problem else ""
        named = set(re.findall(r"[a-z]+(?:_[a-z]+)+|gamma|activation", remedy))
        assert named <= known.keys() | NO_SETTINGS, remedy


def test_what_follows_from_the_environment_is_no_finding_of_its_own():
    wrong = {"explained_variance": 0.0, "dormant_units": 0.8}
    ignored = stuck({"actions_matter": False}, evaluation_lengths=[9, 8, 7])
    assert check(**ignored, **wrong) == ["actions"]


@pytest.mark.parametrize("facts", [{}, {"observation_changes": False}])
def test_a_run_that_has_learned_is_not_accused(facts):
    """A solved corridor: deterministic from the second row on, the return at 1."""
    returns = [0.0, *[1.0] * 11]
    rows = healthy_rows()
    for row, mean in zip(rows, returns, strict=True):
        row |= {
            "environment": facts,
            "entropy": 0.6 if mean == 0 else 1e-4,
            "evaluation_return": mean,
            "evaluation_returns": [mean] * 3,
            "average_return": mean,
            "predicted_return": mean,
            "realized_return": mean,
        }
    assert health.check(Evidence(rows, _SETTINGS)) == []


def test_an_environment_for_evaluation_that_is_the_same_is_not_suspected():
    facts = {"environment": {"actions_matter": True}}
    greedy = {"evaluation_return": 5.0, "changes": facts}
    assert check(**greedy) == []  # Of a policy that takes random actions, too.
    rows = healthy_rows()
    for row in rows:
        row |= {"evaluation_return": 5.0, **facts}
        del row["epsilon"]
    (finding,) = health.check(Evidence(rows, _SETTINGS))
    assert "wrappers" not in finding.remedy
    assert "greedy=False" in finding.remedy


def test_targets_that_are_copied_less_often_than_there_are_rows_do_follow():
    assert check(target_weights_change=[0, 0, 0, 5e-4] * 3) == []


def test_atoms_are_named_where_every_episode_has_the_same_return():
    same = stuck({}, evaluation_terminated=[False] * 3)
    atoms = {"settings": {"vmin": 50.0, "vmax": 60.0}}
    rewards = [
        x for x in health.check(evidence(**same, **atoms)) if x.rule == "rewards"
    ]
    assert "atoms" in rewards[0].text


@pytest.mark.parametrize(("bins", "found"), [(0, []), (101, ["rewards"])])
def test_the_range_of_bins_matters_to_critics_with_bins_alone(bins, found):
    settings = {"value_bins": bins, "vmin": -814.0, "vmax": 0.0}
    assert check(realized_return=500.0, settings=settings) == found


@pytest.mark.parametrize(("weight", "found"), [(0.5, []), (0.0, ["critic"])])
def test_returns_that_cannot_be_foreseen_are_no_fault_of_a_trained_critic(
    weight, found
):
    rows = healthy_rows()
    for row in rows:
        returns = [row["evaluation_return"]] * 3
        row |= {"explained_variance": 0.0, "evaluation_returns": returns}
    settings = {**_SETTINGS, "value_loss_weight": weight}
    assert [x.rule for x in health.check(Evidence(rows, settings))] == found


def test_soft_values_may_hold_the_entropy_of_later_steps():
    # 0.5 * 4 / (1 - 0.99) = 200 explain the difference of 150.
    soft = {"alpha": 0.5, "entropy": 4.0, "entropy_target": 4.0}
    wrong = {"predicted_return": 250.0}
    assert "values" in check(**wrong)
    assert "values" not in check(**wrong, **soft)


def test_a_lost_policy_that_came_back_is_no_finding():
    curve = [*range(0, 100, 10), 5, 100]
    assert check(evaluation_return=curve, average_return=curve) == []


def test_a_time_limit_that_truncates_is_none_of_the_clock():
    truncated = {
        "evaluation_lengths": [30, 100, 100],
        "evaluation_terminated": [True, False, False],
    }
    assert check(changes=truncated) == []


@pytest.mark.parametrize("step", [7, 41])
@pytest.mark.parametrize("last", [0, 11])
def test_episodes_of_one_policy_that_fail_at_one_step_are_none_of_the_clock(step, last):
    """A robot that falls at the same step each time, until or once it is trained."""
    rows = healthy_rows()[: last + 1]
    for row in rows:
        row |= {"evaluation_lengths": [2, 3, 4], "environment": {"time_limit": 1_000}}
    rows[-1] |= {
        "evaluation_lengths": [step] * 200,
        "evaluation_terminated": [True] * 200,
    }
    assert health.check(Evidence(rows, {})) == []
    again = [rows[-1], {**rows[-1], "iteration": 13_000}]
    assert [x.rule for x in health.check(Evidence(again, {}))] == ["clock"]


def test_rules_are_silent_without_their_numbers():
    rows = [{"iteration": i, "environment_steps": i} for i in range(10)]
    assert health.check(Evidence(rows, {})) == []
    assert health.check(Evidence([], {})) == []


def test_a_finding_names_its_figure_bound_source_and_remedy():
    rows = healthy_rows()
    for row in rows:
        row["dormant_units"] = 0.75
    (finding,) = health.check(Evidence(rows, _SETTINGS))
    assert (finding.figure, finding.value, finding.threshold) == (
        "dormant_units",
        0.75,
        0.6,
    )
    assert "Sokar" in finding.source
    assert "a smaller learning rate," in finding.remedy
    assert "dormant_units is 0.75" in str(finding)


def test_a_remedy_names_the_settings_that_the_run_has():
    rows = healthy_rows()
    for row in rows:
        row.update(dormant_units=0.75, explained_variance=0.0, epsilon=0.9)
    settings = {**_SETTINGS, "learning_rate": 0.01, "final_learning_rate": 0.0}
    # What the length of the run explains comes after what is wrong with the network.
    units, _, critic = health.check(Evidence(rows, settings))
    assert "a smaller learning rate (learning_rate=0.01)," in units.remedy
    assert "value_loss_weight" not in critic.remedy
    weighted = health.check(Evidence(rows, {**settings, "value_loss_weight": 0.5}))
    assert "a larger value_loss_weight" in weighted[-1].remedy


def test_a_queue_of_rollouts_is_not_too_small():
    assert check(replay_size=16) == ["replay"]
    assert check(replay_size=16, settings={"max_queue_size": 16}) == []


@pytest.mark.parametrize(
    ("last", "found"), [((100, 98, 97), []), ((100, 98, 20), ["seeds"]), ((9, 100), [])]
)
def test_seeds_that_end_far_apart_are_found(last, found):
    runs = [
        Evidence(
            [
                {"iteration": i, "evaluation_return": 10 + (x - 10) * i / 5}
                for i in (0, 5, 5, 5)
            ],
            {},
        )
        for x in last
    ]
    assert [each.rule for each in health.check_seeds(runs)] == found
