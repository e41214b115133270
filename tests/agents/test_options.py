"""The records of settings, and that the agents' arguments are the records' fields."""

import dataclasses
import inspect
import typing
import warnings

import numpy as np
import pytest
import tensorflow as tf

from tests.agents.every_agent import KINDS
from tfrl import agents
from tfrl.agents import options
from tfrl.agents.mpo import mpo_agent
from tfrl.agents.sac import sac_agent
from tfrl.trajectories import time_step as ts

RECORDS = {
    options.TdOptions: options.TdSettings,
    options.AgentOptions: options.AgentSettings,
}
FIELDS = {
    field.name: field for record in RECORDS for field in dataclasses.fields(record)
}
# The agents that take the settings one by one, in TF-Agents' order.
OF_TF_AGENTS = [
    agents.DqnAgent,
    agents.DdpgAgent,
    agents.Td3Agent,
    agents.SacAgent,
    agents.CqlSacAgent,
]


@pytest.mark.parametrize("record", RECORDS)
def test_keywords_are_the_fields_of_the_record(record):
    fields = {field.name: field.type for field in dataclasses.fields(record)}
    keywords = RECORDS[record].__annotations__
    assert {
        name: getattr(kind, "__forward_arg__", kind) for name, kind in keywords.items()
    } == fields


@pytest.mark.parametrize("agent", OF_TF_AGENTS)
def test_agents_of_tf_agents_take_all_settings(agent):
    arguments = dict(inspect.signature(agent.__init__).parameters)
    if agent is agents.CqlSacAgent:  # TF-Agents' name.
        arguments["seed"] = arguments.pop("random_seed")
    differing = {
        name
        for name, field in FIELDS.items()
        if arguments[name].default != field.default
    }
    # SAC has the squared loss.
    assert differing <= {"td_errors_loss_fn"}


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"gamma": 1.5}, ValueError, "gamma: expected"),
        ({"target_update_tau": -1.0}, ValueError, "target_update_tau: expected"),
        ({"target_update_period": 0}, ValueError, "target_update_period: expected"),
        ({"reward_scale_factor": float("nan")}, ValueError, "reward_scale_factor: "),
        ({"gradient_clipping": 0.0}, ValueError, "gradient_clipping: expected"),
        ({"n_step_update": 0}, ValueError, "n_step_update: expected"),
        ({"n_step_update": 1.5}, TypeError, "n_step_update: "),
        ({"target_update_period": 2.5}, TypeError, "target_update_period: "),
        ({"train_step_counter": 3}, TypeError, "train_step_counter: expected"),
        ({"gama": 0.5}, TypeError, r"SacAgent\(\) got .* argument 'gama'"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(settings, error, message):
    with pytest.raises(error, match=message):
        options.from_settings(agents.SacAgent, settings)


def test_settings_go_before_the_agents_defaults():
    counter = tf.Variable(0)
    td, common = options.from_settings(
        agents.SacAgent,
        {"gamma": 0.5, "train_step_counter": counter, "seed": 3},
        gamma=0.9,
        n_step_update=5,
    )
    assert td == options.TdOptions(gamma=0.5, n_step_update=5)
    assert common.train_step_counter is counter
    assert common.of_base() == {
        "debug_summaries": False,
        "summarize_grads_and_vars": False,
        "train_step_counter": counter,
        "name": None,
        "observation_normalizer": None,
        "reward_normalizer": None,
    }


def test_none_of_the_typed_keywords_is_required():
    assert not options.Settings.__required_keys__
    assert options.Settings.__optional_keys__ == FIELDS.keys()
    assert typing.is_typeddict(options.Settings)


@pytest.mark.parametrize(
    ("keywords", "agent", "taken"),
    [
        (sac_agent.SacSettings, agents.SacAgent, set(FIELDS)),
        (mpo_agent.MpoSettings, agents.MpoAgent, set()),
    ],
)
def test_agents_that_derive_from_another_take_its_optional_arguments(
    keywords, agent, taken
):
    optional = {
        name
        for name, parameter in inspect.signature(agent).parameters.items()
        if parameter.default is not parameter.empty and "optimizer" not in name
    }
    assert keywords.__optional_keys__ - FIELDS.keys() == optional - taken


def test_a_loss_of_td_errors_is_refused_by_agents_that_have_another():
    with pytest.raises(ValueError, match="td_errors_loss_fn: expected None, since D4"):
        KINDS["D4pgAgent"].make(
            ts.time_step_spec(tf.TensorSpec([3])), td_errors_loss_fn=tf.abs
        )


def test_an_unknown_keyword_is_refused_with_the_agents_name():
    with pytest.raises(TypeError, match=r"MpoAgent\(\) got .* argument 'gama'"):
        KINDS["MpoAgent"].make(ts.time_step_spec(tf.TensorSpec([3])), gama=0.9)


def test_floats_that_are_whole_numbers_become_integers():
    td = options.TdOptions(n_step_update=2.0, target_update_period=np.float32(2000))
    assert (td.n_step_update, td.target_update_period) == (2, 2000)
    assert isinstance(td.n_step_update, int)
    assert isinstance(td.target_update_period, int)
    assert options.TdOptions(target_update_period=None).target_update_period is None


def test_values_that_can_grow_without_bound_are_warned_of_once():
    class MyAgent:
        pass

    make = options.from_settings
    values = {"gamma": 1.0, "target_update_tau": 1.0, "target_update_period": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for held in (
            {"gamma": 0.99},
            {"target_update_tau": 0.5},
            {"target_update_period": 2},
            {"gamma": tf.constant(1.0)},
        ):
            make(MyAgent, values | held)
    with pytest.warns(UserWarning, match="MyAgent: its values can grow without bound"):
        make(MyAgent, values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(MyAgent, values)


@pytest.mark.parametrize("kind", ["QrDqnAgent", "TqcAgent"])
def test_a_warning_points_at_the_line_that_makes_the_agent(kind):
    kind = KINDS[kind]
    other = dataclasses.replace(kind, agent=type("Mine", (kind.agent,), {}))
    with pytest.warns(UserWarning, match="Mine: its values can grow") as caught:
        other.make(
            ts.time_step_spec(tf.TensorSpec([2], tf.float32)),
            gamma=1.0,
            target_update_tau=1.0,
            target_update_period=1,
        )
    (warning,) = (w for w in caught if "can grow" in str(w.message))
    assert warning.filename == inspect.getfile(type(kind))
