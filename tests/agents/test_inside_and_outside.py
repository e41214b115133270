"""Agents train on the same experience inside of a loop and after it.

What is computed inside of a loop or a condition is out of reach after it, but libraries
keep results by the tensors that they are of: TFP's bijectors do. A fast test of one
agent is in `tests/train/test_on_policy_training.py`.
"""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.agents import every_agent
from tfrl import networks, testing
from tfrl.acme.tf.networks import rescaling
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

TIME_STEP = ts.time_step_spec(tensor_spec.BoundedTensorSpec([3], tf.float32, -1.0, 1.0))
# As minibatches need it.
PREPROCESSED = {
    "compute_value_and_advantage_in_train": False,
    "update_normalizers_in_train": False,
}


# What rounding errors move: values of bins near 5e8, by 0.002, and so the first steps
# of Adam, which are all of one size.
AMPLIFIED = ("actor", "critic", "range")


class Squashed(every_agent.Parts):
    """Parts with actors whose distributions have bijectors without weights."""

    def distributions(self):
        layers = [
            networks.LayerNormMLP(self.layers, activate_final=True),
            networks.MultivariateNormalDiagHead(2),
            rescaling.TanhToSpec(every_agent.FORCE),
        ]
        return networks.Sequential(layers, seed=self.seed)


def named(*names, parts=every_agent.Parts, **kwargs):
    """Cases of agents that are given continuous actions."""
    return [
        pytest.param(
            name, every_agent.FORCE, parts, kwargs, id=f"{name}-{parts.__name__}"
        )
        for name in names
    ]


CASES = [
    *(
        pytest.param(name, None, every_agent.Parts, {}, id=name)
        for name, kind in every_agent.KINDS.items()
        if not kind.without_weights
    ),
    *named("ReinforceAgent", "A2CAgent", "ImpalaAgent", "ImpalaAgent-recurrent"),
    *named("ReinforceAgent", "A2CAgent", "IqlAgent", parts=Squashed),
    *(
        case
        for parts in (every_agent.Parts, Squashed)
        for case in named(
            "PPOAgent",
            "PPOClipAgent",
            "PPOKLPenaltyAgent",
            parts=parts,
            **PREPROCESSED,
        )
    ),
    *named("PPOClipAgent-recurrent", **PREPROCESSED),
]


def trained(name, action_spec, parts, arguments, in_graph):
    """Returns the variables after two updates in a loop and one after it."""
    with mock.patch.object(every_agent, "Parts", parts):
        agent = every_agent.KINDS[name].make(TIME_STEP, action_spec, **arguments)
    experience = testing.AgentConformance().make_experience(agent, 4)

    def train(experience):
        def update(i):
            agent.train(experience)
            return (i + 1,)

        # It is a loop of Python if there is no graph.
        tf.while_loop(lambda i: i < 2, update, (0,))
        tf.cond(
            agent.train_step_counter > 0,
            lambda: agent.loss(experience).loss,
            lambda: 0.0,
        )
        agent.diagnose(experience)
        if hasattr(agent, "end_iteration"):
            agent.end_iteration([experience])
        agent.train(experience)

    (tf.function(train, autograph=False) if in_graph else train)(experience)
    left_out = AMPLIFIED if name.startswith("DreamerAgent") else ()
    return [
        v.numpy().astype(np.float64)
        for v in agent.variables()
        if not any(part in v.name for part in left_out)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "action_spec", "parts", "arguments"), CASES)
def test_updates_in_a_loop_and_after_it_are_those_of_python(
    name, action_spec, parts, arguments
):
    found, expected = (
        trained(name, action_spec, parts, arguments, in_graph)
        for in_graph in (True, False)
    )
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
