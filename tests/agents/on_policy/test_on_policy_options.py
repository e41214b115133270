"""The settings of on-policy agents: their keywords, defaults and checks."""

import dataclasses

import keras
import pytest
import tensorflow as tf

from tfrl import agents, networks
from tfrl.agents import options
from tfrl.agents.on_policy import OnPolicyOptions, on_policy_options
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
CHOICE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)


def make(kind, **settings):
    return kind(
        ts.time_step_spec(OBSERVATION),
        CHOICE,
        keras.optimizers.SGD(0.1),
        networks.ActorDistributionNetwork(OBSERVATION, CHOICE, fc_layer_params=(4,)),
        networks.ValueNetwork(OBSERVATION, fc_layer_params=(4,)),
        **settings,
    )


def test_keywords_are_the_fields_of_both_records():
    fields = {
        field.name: field.type
        for record in (options.AgentOptions, OnPolicyOptions)
        for field in dataclasses.fields(record)
    }
    keywords = on_policy_options.OnPolicySettings.__annotations__
    assert {name: kind.__forward_arg__ for name, kind in keywords.items()} == fields


def test_an_agent_has_defaults_of_its_own():
    assert make(agents.A2CAgent)._on_policy == OnPolicyOptions(gradient_clipping=0.5)
    impala = make(agents.ImpalaAgent, discount_factor=0.5, name="impala", seed=3)
    assert impala._on_policy == OnPolicyOptions(
        discount_factor=0.5, entropy_regularization=0.01
    )
    assert impala.name == "impala"


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"lambda_value": 1.5}, ValueError, "lambda_value: expected"),
        ({"discount_factor": -0.5}, ValueError, "discount_factor: expected"),
        ({"entropy_regularization": -1.0}, ValueError, "entropy_regularization: "),
        ({"value_pred_loss_coef": "1"}, TypeError, "value_pred_loss_coef: "),
        ({"gradient_clipping": 0.0}, ValueError, "gradient_clipping: expected"),
        ({"train_step_counter": 3}, TypeError, "train_step_counter: expected"),
        ({"gamma": 0.5}, TypeError, r"Agent\(\) got .* argument 'gamma', .*discount_"),
    ],
)
@pytest.mark.parametrize("kind", [agents.A2CAgent, agents.ImpalaAgent])
def test_a_wrong_setting_is_refused_by_name(kind, settings, error, message):
    with pytest.raises(error, match=message):
        make(kind, **settings)
