"""A saved learner does what its agent does, bit for bit, and gives its state back."""

import functools
import http.client
import json
import socket
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import test_documentation
from tests.bandits import bandit_data as data
from tests.pairs import some_slow
from tfrl import agents, networks, train
from tfrl.bandits import agents as bandit_agents
from tfrl.train import served_learner
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

NUM_ROWS, PAGE = 6, "serving_learners.md"


def linear(kind=bandit_agents.LinearUCBAgent):
    return kind(data.time_step_spec(3), data.action_spec(4), seed=1)


def per_arm():
    return bandit_agents.LinearThompsonSamplingAgent(
        data.per_arm_spec(2, 3, 4, has_number=True),
        data.action_spec(4),
        accepts_per_arm_features=True,
        emit_log_probability=True,
        seed=1,
    )


def dqn():
    spec, action = data.time_step_spec(3), data.action_spec(4)
    network = networks.QNetwork(spec.observation, action, fc_layer_params=(5,), seed=1)
    agent = agents.DqnAgent(
        spec,
        action,
        network,
        keras.optimizers.Adam(0.01),
        gamma=0.9,
        target_update_tau=0.1,
        seed=1,
    )
    agent.initialize()
    return agent


def inputs_of(function, batch_size=1, seed=0):
    """Random inputs of a signature, arrays by name."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, spec in function.structured_input_signature[1].items():
        shape = [batch_size if n is None else n for n in spec.shape]
        values = rng.uniform(1, 3, shape)  # A number of arms is at least 1.
        if name == "discount":
            values = rng.integers(2, size=shape)
        made[name] = values.astype(spec.dtype.as_numpy_dtype)
    return made


def call(function, values):
    return function(**{name: tf.constant(x) for name, x in values.items()})


def experience(row, agent):
    """What the agent's own `train` takes for the inputs of `learn`."""
    if not agent.learns_from_rounds:
        discount = tf.constant(row["discount"])
        steps = [
            ts.TimeStep(step_type, reward, d, tf.constant(row[name]))
            for step_type, reward, d, name in (
                (tf.fill([1], 1), tf.zeros([1]), tf.ones([1]), "observation"),
                (
                    tf.where(discount == 0, 2, 1),
                    tf.constant(row["reward"]),
                    discount,
                    "next_observation",
                ),
            )
        ]
        action = policy_step.PolicyStep(tf.constant(row["action"]))
        return trajectory.Transition(steps[0], action, steps[1])
    spec = agent.training_data_spec
    flat = {name: tf.constant(x)[:, tf.newaxis] for name, x in row.items()}
    names = ["observation", "action", "policy_info", "reward"]
    nest = {name: getattr(spec, name) for name in names}
    named = served_learner._named(nest)
    made = tf.nest.pack_sequence_as(
        nest, [flat[x.name] for x in tf.nest.flatten(named)]
    )
    return trajectory.single_step(**made, discount=tf.zeros([1, 1]))


@pytest.mark.parametrize("make", some_slow([linear, per_arm, dqn], fast=[per_arm]))
def test_an_update_has_the_bits_of_the_agent_s(make, tmp_path):
    agent = make()
    train.save_learner(agent, tmp_path / "model", learn_batch_size=1)
    model = tf.saved_model.load(str(tmp_path / "model"))
    learn, state = (model.signatures[name] for name in ("learn", "state"))
    update = tf.function(agent.train, autograph=False)
    for seed in range(NUM_ROWS):
        row = inputs_of(learn, seed=seed)
        told, expected = call(learn, row), update(experience(row, agent))
        np.testing.assert_array_equal(told["loss"], expected.loss)
        assert told["train_step"] == seed + 1
    found = state()
    assert len(found) == len(agent.variables)
    for i, variable in enumerate(agent.variables):
        np.testing.assert_array_equal(found[f"variable_{i}"], variable)


def with_first(name, value):
    """Changes the first number of an input."""

    def change(row):
        row[name] = row[name].copy()
        row[name].flat[0] = value
        return row

    return change


def twice(name):
    return lambda row: {**row, name: np.repeat(row[name], 2, axis=0)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Returns the model of an agent: of one row, or, of DQN, of any number of rows."""
    folder = tmp_path_factory.mktemp("saved")

    @functools.cache
    def load(make):
        path = str(folder / make.__name__)
        train.save_learner(make(), path, learn_batch_size=1 if make is linear else None)
        return tf.saved_model.load(path)

    return load


WRONG = {
    "two rows for one": (linear, lambda row: {k: [*x, *x] for k, x in row.items()}),
    "no rows": (dqn, lambda row: {k: x[:0] for k, x in row.items()}),
    "a short row": (linear, lambda row: {**row, "observation": [[1.0]]}),
    "a long row": (dqn, lambda row: {**row, "next_observation": [[1.0] * 4]}),
    "no batch": (linear, lambda row: {**row, "action": row["action"][0]}),
    "other numbers of rows": (dqn, twice("observation")),
    "more actions": (dqn, twice("action")),
    "an arm too many": (linear, with_first("action", 4)),
    "an arm below 0": (dqn, with_first("action", -1)),
    "a reward of NaN": (linear, with_first("reward", np.nan)),
    "an infinite reward": (dqn, with_first("reward", np.inf)),
    "an observation of NaN": (linear, with_first("observation", np.nan)),
    "an infinite next one": (dqn, with_first("next_observation", -np.inf)),
    "a discount above 1": (dqn, with_first("discount", 1.5)),
}


@pytest.mark.parametrize(
    ("make", "change"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.slow] * (case[0] is dqn))
        for name, case in WRONG.items()
    ],
)
def test_a_wrong_row_changes_nothing(saved, make, change):
    learn, state = (saved(make).signatures[name] for name in ("learn", "state"))
    before = {name: x.numpy() for name, x in state().items()}
    dtypes = {k: x.dtype for k, x in learn.structured_input_signature[1].items()}
    row = inputs_of(learn, batch_size=1)
    wrong = {k: tf.constant(x, dtypes[k]) for k, x in change({**row}).items()}
    with pytest.raises(tf.errors.InvalidArgumentError):
        learn(**wrong)
    for name, x in state().items():
        np.testing.assert_array_equal(x, before[name])
    call(learn, row)
    assert any(np.any(x != before[name]) for name, x in state().items())


def test_a_state_of_other_shapes_restores_nothing(saved):
    state, restore = (saved(linear).signatures[name] for name in ("state", "restore"))
    before = {name: x.numpy() for name, x in state().items()}
    last = max(
        (k for k, x in before.items() if x.ndim), key=lambda k: int(k.split("_")[1])
    )
    wrong = {k: x + 1 for k, x in before.items()} | {last: before[last][..., :-1]}
    with pytest.raises(tf.errors.InvalidArgumentError):
        call(restore, wrong)
    for name, x in state().items():
        np.testing.assert_array_equal(x, before[name])


@pytest.mark.slow
def test_a_state_is_restored_in_another_copy(tmp_path):
    train.save_learner(linear(), tmp_path / "model")
    first, second = (tf.saved_model.load(str(tmp_path / "model")) for _ in range(2))
    rows = inputs_of(first.signatures["learn"], batch_size=NUM_ROWS)
    call(first.signatures["learn"], rows)
    state = {name: x.numpy() for name, x in first.signatures["state"]().items()}
    assert call(second.signatures["restore"], state)["train_step"] == 1
    for model in (first, second):
        call(model.signatures["learn"], rows)
    for name, x in first.signatures["state"]().items():
        np.testing.assert_array_equal(x, second.signatures["state"]()[name])


@pytest.mark.slow
def test_actions_come_with_the_info_that_learning_needs(tmp_path):
    train.save_learner(per_arm(), tmp_path / "model")
    model = tf.saved_model.load(str(tmp_path / "model"))
    act, learn = model.signatures["act"], model.signatures["learn"]
    observed = inputs_of(act, batch_size=5)
    observed["observation_num_actions"][:] = 2
    told = call(act, observed)
    assert np.all(told["action"] < 2)
    row = {**told, **observed, "reward": np.ones(5, np.float32)}
    arms = observed["observation_per_arm"][np.arange(5), told["action"]]
    np.testing.assert_array_equal(told["policy_info_chosen_arm_features"], arms)
    needed = learn.structured_input_signature[1]
    call(learn, {name: row[name] for name in needed})


@pytest.mark.slow
def test_copies_explore_differently(tmp_path):
    kind = bandit_agents.LinearThompsonSamplingAgent
    train.save_learner(linear(kind), tmp_path / "model")
    observed = {"observation": np.ones([50, 3], np.float32)}
    first, second = (
        call(tf.saved_model.load(str(tmp_path / "model")).signatures["act"], observed)
        for _ in range(2)
    )
    assert np.any(first["action"] != second["action"])


def test_agents_of_sequences_are_refused(tmp_path):
    spec, action = data.time_step_spec(3), data.action_spec(4)
    network = networks.QRnnNetwork(spec.observation, action, lstm_size=(4,))
    agent = agents.DqnAgent(spec, action, network, None, gamma=0.9)
    with pytest.raises(NotImplementedError, match="DqnAgent, which learns from sequen"):
        train.save_learner(agent, tmp_path / "model")


@pytest.mark.slow
def test_the_page_s_server_outlasts_wrong_and_unfinished_requests(tmp_path):
    page = {"__name__": "serving"}
    exec(test_documentation.code_of(test_documentation.DOCS / PAGE, 2), page)
    page["Handler"].seconds = 1
    server = page["make_server"](page["folder"], port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = "localhost", server.server_port

    def post(name, row):
        connection = http.client.HTTPConnection(*address, timeout=60)
        connection.request("POST", f"/{name}", json.dumps(row))
        return json.load(connection.getresponse())

    row = {"observation": [[0.5, 0.5]], "action": [1], "reward": [1.0]}
    post("learn", row)
    wrong = [
        ("learn", {**row, "action": [9]}),
        ("learn", {**row, "reward": [float("nan")]}),
        ("learn", {name: x * 2 for name, x in row.items()}),
        ("restore", server.learner.call("state", {})),
    ]
    for name, each in wrong:
        listed = {k: np.asarray(x).tolist() for k, x in each.items()}
        with pytest.raises((http.client.HTTPException, OSError)):
            post(name, listed)
    waiting = [socket.create_connection(address) for _ in range(40)]
    for each in waiting:
        each.sendall(b"POST /learn HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
    post("learn", row)
    again = page["Learner"](page["folder"])
    assert server.learner.number == again.number == 2
    for name, x in again.call("state", {}).items():
        np.testing.assert_array_equal(x, server.learner.call("state", {})[name])
    server.shutdown()
