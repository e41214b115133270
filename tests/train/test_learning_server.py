"""The server of the guide's page learns, and loses no row when it is killed."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tests.pairs import some_slow
from tfrl import train
from tfrl.bandits import agents

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "serving_learners.md"
(LISTING,) = re.findall(
    r"```python\n(import http\.server\n.*?)```", PAGE.read_text(), re.DOTALL
)
RUN = """
import sys
server = make_server(sys.argv[1], port=0)
assert "tfrl" not in sys.modules
print(server.server_port, flush=True)
server.serve_forever()
"""


def run_listing():
    """Returns the names that the page's program defines."""
    guide = {"__name__": "guide"}
    exec(compile(LISTING, str(PAGE), "exec"), guide)
    return guide


def make_agent():
    return agents.LinearUCBAgent(data.time_step_spec(3), data.action_spec(4), seed=1)


def rows(number):
    x, action, reward = data.rows(number, 3, 4)
    return [
        {"observation": [x[i].tolist()], "action": [int(action[i])]}
        | {"reward": [float(reward[i])]}
        for i in range(number)
    ]


def check_learned(state, learned):
    """The state has the bits of an agent that was trained on these rows."""
    agent = make_agent()
    update = tf.function(agent.train, autograph=False)
    for row in learned:
        arrays = (np.float32(row["observation"]), row["action"], row["reward"])
        update(data.experience(*(np.array(x)[:, None] for x in arrays)))
    for i, variable in enumerate(agent.variables):
        np.testing.assert_array_equal(state[f"variable_{i}"], variable)


@pytest.mark.parametrize("number", some_slow([3, 1003], fast=[3]))
def test_a_learner_goes_on_from_its_files(number, tmp_path):
    assert len([line for line in LISTING.splitlines() if line.strip()]) <= 80
    guide = run_listing()
    train.save_learner(make_agent(), tmp_path / "model", learn_batch_size=1)
    learner = guide["Learner"](tmp_path)
    learned = rows(number)
    for row in learned:
        learner.learn(row)
    with pytest.raises(Exception, match="shape"):
        learner.learn({**learned[0], "observation": [[1.0]]})
    assert (tmp_path / "state.npz").exists() == (number > 1000)
    learner.rows.write(b'{"half a row')
    learner.rows.close()
    again = guide["Learner"](tmp_path)
    check_learned(again.call("state", {}), learned)
    again.learn(learned[0])
    again.rows.close()
    third = guide["Learner"](tmp_path)
    check_learned(third.call("state", {}), [*learned, learned[0]])


@pytest.mark.slow
def test_a_killed_server_loses_no_row(tmp_path):
    train.save_learner(make_agent(), tmp_path / "model", learn_batch_size=1)
    script = tmp_path / "server.py"
    script.write_text(LISTING + RUN)

    def start():
        process = subprocess.Popen(
            [sys.executable, "-P", script, tmp_path], stdout=subprocess.PIPE, text=True
        )
        return process, int(process.stdout.readline())

    def post(name, **inputs):
        body = json.dumps(inputs).encode()
        with urllib.request.urlopen(f"http://localhost:{port}/{name}", body) as answer:
            return json.loads(answer.read())

    learned = rows(40)
    process, port = start()
    try:
        for i, row in enumerate(learned):
            post("act", observation=row["observation"])
            assert post("learn", **row)["train_step"] == i + 1
            if i % 15 == 10:
                process.send_signal(signal.SIGKILL)
                process.wait()
                process, port = start()
    finally:
        process.kill()
        process.wait()
    check_learned(run_listing()["Learner"](tmp_path).call("state", {}), learned)
