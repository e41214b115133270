"""Saved policies behind the server of the guide's page, which has TensorFlow alone."""

import contextlib
import http.client
import json
import pathlib
import re
import threading

import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import tfrl
from tests.algorithms.test_spaces import Tiny
from tfrl.policies import policy_saver
from tfrl.utils import nest_utils

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "saving_policies.md"
VECTOR = spaces.Box(-1, 1, (3,), np.float32)
IMAGE = spaces.Box(0, 255, (8, 8, 3), np.uint8)
ROBOT = spaces.Dict(
    camera=IMAGE, speed=VECTOR, gear=spaces.Discrete(3), flags=spaces.MultiBinary(2)
)
OBSERVATIONS = {
    "vector": VECTOR,
    "float64": spaces.Box(-1, 1, (3,), np.float64),
    "scalar": spaces.Box(-1, 1, (), np.float32),
    "image": IMAGE,
    "bits": spaces.MultiBinary(4),
    "integer": spaces.Discrete(5, start=-2),
    "integers": spaces.MultiDiscrete([3, 4]),
    "dict": ROBOT,
    "deeper": spaces.Dict(inner=spaces.Dict(x=VECTOR), y=VECTOR),
    "tuple": spaces.Tuple([VECTOR, spaces.Discrete(3)]),
}
ACTIONS = {
    "choice": spaces.Discrete(3),
    "shifted": spaces.Discrete(3, start=1),
    "choices": spaces.MultiDiscrete([2, 3]),
    "bits": spaces.MultiBinary(3),
    "vector": spaces.Box(-2, 2, (2,), np.float32),
    "scalar": spaces.Box(-2, 2, (), np.float32),
    "dict": spaces.Dict(jump=spaces.Discrete(2), move=VECTOR),
}
KINDS = [
    *((kind, name, "choice") for name in OBSERVATIONS for kind in ("PPO", "DQN")),
    *(("PPO", "vector", name) for name in ACTIONS if name != "choice"),
    *(("DQN", "vector", name) for name in ("shifted", "choices", "bits")),
    *((kind, "vector", "vector") for kind in ("SAC", "TD3", "MPO")),
    *(("SAC", name, "scalar") for name in ("dict", "image")),
    *(("R2D2", name, "choice") for name in ("vector", "dict", "image")),
]


@pytest.fixture(scope="module")
def guide():
    """Gives the functions of the listing."""
    (listing,) = re.findall(
        r"```python\n(import http\.server\n.*?)```", PAGE.read_text(), re.DOTALL
    )
    names = {"__name__": "guide"}
    exec(compile(listing, str(PAGE), "exec"), names)
    assert len(listing.splitlines()) <= 50
    return names


@contextlib.contextmanager
def client_of(guide, model):
    """Gives a function that posts a request's body, and returns status and answer."""
    server = guide["make_server"]({"it": model}, port=0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def post(**body):
        connection = http.client.HTTPConnection("localhost", server.server_port)
        connection.request("POST", "/v1/models/it:predict", json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    try:
        yield post
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def columns_of(nest):
    """The arrays of a nest as JSON, by their paths; of one array, the array alone."""
    named = {path: x.tolist() for path, x in nest_utils.flatten_with_joined_paths(nest)}
    return named[""] if list(named) == [""] else named


def rows_of(columns):
    if not isinstance(columns, dict):
        return columns
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def draw(space, policy, num=3):
    """Draws a batch of observations with the dtypes of a policy."""
    space.seed(1)
    return tf.nest.map_structure(
        lambda spec, *leaves: np.stack(leaves).astype(spec.dtype.as_numpy_dtype),
        policy.time_step_spec.observation,
        *(space.sample() for _ in range(num)),
    )


def assert_equal(served, actions):
    named = served if isinstance(served, dict) else {"action": served}
    for path, action in nest_utils.flatten_with_joined_paths(actions):
        name = f"action/{path}" if path else "action"
        np.testing.assert_allclose(named.pop(name), action, atol=1e-5)
    assert not named


def check_served(guide, kind, observation, action, folder):
    """Checks that a client with JSON gets the actions of the live policy."""
    space = OBSERVATIONS[observation]
    made = getattr(tfrl, kind)(Tiny(space, ACTIONS[action]), seed=0)
    policy = made.agent.policy
    policy_saver.PolicySaver(policy).save(str(folder))
    batch = draw(space, policy)
    actions, _ = policy.predict(batch)
    columns = columns_of(batch)
    with client_of(guide, tf.saved_model.load(str(folder))) as post:
        if policy.is_recurrent:
            answer = post_with_state(post, columns)
            states = [answer.pop(f"state/{i}") for i in range(2)]
            assert np.shape(states)[:2] == (2, 3)
            assert_equal(answer, actions)
            return
        status, answer = post(instances=rows_of(columns))
        assert status == 200, answer
        rows = answer["predictions"]
        if isinstance(rows[0], dict):
            rows = {name: [row[name] for row in rows] for name in rows[0]}
        assert_equal(rows, actions)
        assert_equal(post(inputs=columns)[1]["outputs"], actions)


def post_with_state(post, columns, num=3):
    """Asks a recurrent policy for its first state, and then for its actions."""
    _, answer = post(signature_name="get_initial_state", inputs={"batch_size": num})
    named = columns if isinstance(columns, dict) else {"": columns}
    status, answer = post(
        signature_name="action",
        inputs={
            "0/step_type": [0] * num,
            "0/reward": [0.0] * num,
            "0/discount": [1.0] * num,
            **{f"0/observation/{name}".rstrip("/"): x for name, x in named.items()},
            **{f"1/{name}": x for name, x in answer["outputs"].items()},
        },
    )
    assert status == 200, answer
    return answer["outputs"]


def test_a_client_with_json_gets_the_actions_for_all_kinds_of_observations(
    guide, tmp_path
):
    check_served(guide, "DQN", "dict", "choice", tmp_path)


def test_the_server_says_what_is_wrong_with_a_request(guide, tmp_path):
    model = tf.Module()
    model.signatures = {}
    with client_of(guide, model) as post:
        assert post(instances=[[1.0]]) == (
            400,
            {"error": "KeyError: 'serving_default'"},
        )


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "observation", "action"), KINDS)
def test_a_client_gets_the_actions_of_every_kind(
    guide, kind, observation, action, tmp_path
):
    check_served(guide, kind, observation, action, tmp_path)
