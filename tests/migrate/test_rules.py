"""The rules of `tfrl migrate`: their examples, what they leave, and their tables."""

import importlib.util
import operator
import pathlib
import sys
import warnings

import pytest

from tfrl.migrate import names, programs
from tfrl.migrate import rule as rule_lib
from tfrl.migrate.rules import RULES

DOCS = pathlib.Path(__file__).parents[2] / "docs"
HEAD = "import gymnasium as gym\nimport numpy as np\nimport tensorflow as tf\n"


@pytest.fixture
def moved(tmp_path):
    """Returns the text and the notes of a program after the rules."""

    def move(source, head=f"{HEAD}import tfrl\n"):
        file = tmp_path / "program.py"
        file.write_text(head + source)
        (result,) = programs.migrate([file])
        assert not result.reason
        assert result.text.startswith(head)
        return result.text.removeprefix(head), result.notes

    return move


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_does_its_example_once(rule, moved):
    after, _ = moved(rule.side("+"), head="")
    assert after == rule.side("-") != rule.side("+")
    assert moved(after, head="")[0] == after
    rule_lib.scopes_in(after)


def test_the_page_shows_every_rule():
    page = (DOCS / "migrate.md").read_text()
    for rule in RULES:
        assert f"\n### {rule.name}\n" in page


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Aliases, star imports, and names that only look like the library's.
        ("import tf_agents.networks as n\n", "import tfrl.networks as n\n"),
        (
            "from gym.envs.mujoco.reacher import ReacherEnv\n"
            "from gym.envs.mujoco import hopper_v3 as h\n",
            "from gymnasium.envs.mujoco.reacher_v4 import ReacherEnv\n"
            "from gymnasium.envs.mujoco import hopper_v4 as h\n",
        ),
        ("from tf_agents.networks import *\n", "from tfrl.networks import *\n"),
        (
            "import acme\nx = acme.acme(acme=1).acme\n",
            "import tfrl.acme\nx = tfrl.acme.acme(acme=1).acme\n",
        ),
        ("def f(acme):\n    return acme.x\n", "def f(acme):\n    return acme.x\n"),
        (
            "from acme.agents import d4pg\nfrom acme import networks\n",
            "from tfrl.acme.agents.tf import d4pg\nfrom tfrl.acme.tf import networks\n",
        ),
        (
            "from tf_agents.environments import (\n    utils,  # checks\n"
            "    time_step,  # steps\n    wrappers,\n)\n",
            "from tfrl.environments import (\n    utils,  # checks\n"
            "    wrappers,\n)\nfrom tfrl.trajectories import time_step\n",
        ),
        ("import reverb.client\n", "from tfrl import replay_service as reverb\n"),
        (
            "from reverb import Table as T\n",
            "from tfrl.replay_service import Table as T\n",
        ),
        ("import gym.spaces\n", "import gymnasium.spaces, gymnasium as gym\n"),
        (
            "try:\n    import gym\nexcept ImportError:\n    gym = None\n",
            "try:\n    import gymnasium as gym\nexcept ImportError:\n    gym = None\n",
        ),
        (
            "from tf_agents.experimental.train import actor\n",
            "from tfrl.train import actor\n",
        ),
        (
            "import tf_agents.environments.time_step as ts\n",
            "import tfrl.trajectories.time_step as ts\n",
        ),
        ("from tf_keras import layers\n", "from keras import layers\n"),
        (
            "from tensorflow.keras.optimizers.legacy import Adam\n",
            "from tensorflow.keras.optimizers import Adam\n",
        ),
        (
            "from tensorflow.keras.losses import mean_squared_error\n",
            "from tensorflow.keras.losses import MSE as mean_squared_error\n",
        ),
        # Names of other libraries.
        (
            "x = np.NINF, np.int, np.bool, np.int32\n",
            "x = (-np.inf), int, np.bool, np.int32\n",
        ),
        ("x = tf.log(tf.to_float(2))\n", "x = tf.math.log(tf.compat.v1.to_float(2))\n"),
        (
            "c = tf.ConfigProto()\ns = tf.summary.FileWriter('x')\n",
            "c = tf.compat.v1.ConfigProto()\n"
            "s = tf.compat.v1.summary.FileWriter('x')\n",
        ),
        (
            "x = tf.random_normal([2]) + tf.matrix_inverse(y) + tf.mul(y, tf.log(y))\n",
            "x = tf.random.normal([2]) + tf.linalg.inv(y) + "
            "tf.multiply(y, tf.math.log(y))\n",
        ),
        (
            "from keras.layers.advanced_activations import LeakyReLU\n"
            "from gym.wrappers.frame_stack import FrameStack\n",
            "from keras.layers import LeakyReLU\n"
            "from gymnasium.wrappers import FrameStackObservation as FrameStack\n",
        ),
        ("x = np.math.pi\n", "import math\nx = math.pi\n"),
        # Pieces of f-strings, and lines with several statements.
        (
            "x = f'{np.float(3)} é {np.Inf}'\n"
            'y = f"""\n{np.float(3)} é {np.Inf:>3}"""\n',
            'x = f\'{float(3)} é {np.inf}\'\ny = f"""\n{float(3)} é {np.inf:>3}"""\n',
        ),
        (
            "if 1: import reverb; e = gym.make('A-v1'); "
            "a, b, c, _ = e.step(0); f(e.reset())\n",
            "if 1: from tfrl import replay_service as reverb; e = gym.make('A-v1'); "
            "a, b, terminated, truncated, _ = e.step(0); c = terminated or truncated; "
            "f(e.reset()[0])\n",
        ),
        (
            "e = gym.make(\n    'A-v1',  # a, b\n)\ne.render('human')\n",
            "e = gym.make(\n    'A-v1',  # a, b\n render_mode=\"human\")\ne.render()\n",
        ),
        (
            "class E(gym.Env):\n    def reset(self): return (a), (b)\n",
            "class E(gym.Env):\n    def reset(self, *, seed=None, options=None): "
            "return ((a), (b)), {}\n",
        ),
        (
            "class E(gym.Env):\n    def reset(self, x: int = a.b) -> int:\n"
            "        return x\n",
            "class E(gym.Env):\n"
            "    def reset(self, x: int = a.b, *, seed=None, options=None) -> int:\n"
            "        super().reset(seed=seed)\n        return x, {}\n",
        ),
        # Arguments, and files of models.
        (
            "m.compile(a, experimental_run_tf_function=False,)\n"
            "m.fit(x, workers=2, epochs=3, **more)\n",
            "m.compile(a)\nm.fit(x, epochs=3, **more)\n",
        ),
        (
            "def f(m: tf.keras.Model):\n    path = 'a/b'\n    m.save(path)\n"
            "    return tf.keras.models.load_model(path)\n",
            "def f(m: tf.keras.Model):\n    path = 'a/b'\n"
            '    m.save(path + ".keras")\n'
            '    return tf.keras.models.load_model(path + ".keras")\n',
        ),
        (
            "m = tf.keras.Sequential()\nm.save('a.h5')\nsaver.save('b')\n",
            "m = tf.keras.Sequential()\nm.save('a.h5')\nsaver.save('b')\n",
        ),
        # Sizes of layers.
        (
            "def f(num_actions):\n    return tf.keras.layers.Dense(num_actions)\n",
            "def f(num_actions):\n    return tf.keras.layers.Dense(int(num_actions))\n",
        ),
        (
            "import functools as t\nd = t.partial(tf.keras.layers.Dense, name=a)\n"
            "def f(num_actions):\n    return d(num_actions)\n",
            "import functools as t\nd = t.partial(tf.keras.layers.Dense, name=a)\n"
            "def f(num_actions):\n    return d(int(num_actions))\n",
        ),
        (
            "import functools as t\nd = t.partial(tf.keras.layers.Dense, units=3)\n"
            "def f(actions):\n    return d(name=actions)(actions)\n",
            "import functools as t\nd = t.partial(tf.keras.layers.Dense, units=3)\n"
            "def f(actions):\n    return d(name=actions)(actions)\n",
        ),
        (
            "n = 3\nlayer = tf.keras.layers.Dense(n)\n",
            "n = 3\nlayer = tf.keras.layers.Dense(n)\n",
        ),
        (
            "def f(n):\n    return tf.keras.layers.Dense(n)\nf(3)\n",
            "def f(n):\n    return tf.keras.layers.Dense(n)\nf(3)\n",
        ),
        (
            "layer = tf.keras.layers.Dense(units=len(x.shape))\n",
            "layer = tf.keras.layers.Dense(units=len(x.shape))\n",
        ),
        # The switch to Keras 2, alone in a block.
        (
            "import os\nif True:\n    # Keras 2\n"
            '    os.environ["TF_USE_LEGACY_KERAS"] = "1"\n',
            "import os\nif True:\n    pass\n",
        ),
        # Optimizers of TF 1: agents take them, loops of one's own do not.
        (
            "o = tf.train.AdamOptimizer(1e-3)\no.apply_gradients(g)\n",
            "o = tf.keras.optimizers.Adam(1e-3, epsilon=1e-8)\no.apply_gradients(g)\n",
        ),
        (
            "o = tf.train.AdamOptimizer(**more)\no.apply_gradients(g)\n",
            "o = tf.keras.optimizers.Adam(**more)\no.apply_gradients(g)\n",
        ),
        (
            "o = tf.train.AdamOptimizer(use_locking=True)\no.apply_gradients(g)\n",
            "o = tf.keras.optimizers.Adam()\no.apply_gradients(g)\n",
        ),
        # Calls of environments.
        (
            'e = gym.make("Foo-v1")\n'
            "x = e.x, e.spec, e.unwrapped.y, e._max_episode_steps\n",
            'e = gym.make("Foo-v1")\n'
            "x = e.unwrapped.x, e.spec, e.unwrapped.y, e.spec.max_episode_steps\n",
        ),
        (
            'e = gym.make("Foo-v1")\nx = f(e.reset())\n',
            'e = gym.make("Foo-v1")\nx = f(e.reset()[0])\n',
        ),
        (
            'e = gym.make("Foo-v1")\no, _, _, _ = e.step(0)\n',
            'e = gym.make("Foo-v1")\no, _, _, _, _ = e.step(0)\n',
        ),
        (
            'e = gym.make("Foo-v1")\nwhile 1: o, r, d, i = e.step(0)\n',
            'e = gym.make("Foo-v1")\nwhile 1: o, r, terminated, truncated, i = '
            "e.step(0); d = terminated or truncated\n",
        ),
        (
            'e = gym.make("Foo-v1")\ne.seed(3)\n',
            'e = gym.make("Foo-v1")\ne.reset(seed=3)\n',
        ),
        (
            "def f(e: gym.Env):\n    o = e.reset()\n",
            "def f(e: gym.Env):\n    o, _ = e.reset()\n",
        ),
        (
            "from tfrl.environments import suite_gym\n"
            "e = suite_gym.load('A-v1')\nt = e.reset()\n",
            "from tfrl.environments import suite_gym\n"
            "e = suite_gym.load('A-v1')\nt = e.reset()\n",
        ),
        (  # A name with several values: the last certain one counts.
            'e = gym.make("A-v1")\ne.seed(1)\nfor _ in x:\n    o = e.reset()\n'
            "e = f()\no = e.reset()\n",
            'e = gym.make("A-v1")\ne.reset(seed=1)\nfor _ in x:\n    o, _ = e.reset()\n'
            "e = f()\no = e.reset()\n",
        ),
        (
            'e = gym.make("A-v1")\nfor _ in x:\n    o = e.reset()\n    e = f()\n',
            'e = gym.make("A-v1")\nfor _ in x:\n    o = e.reset()\n    e = f()\n',
        ),
        (
            'if x:\n    e = gym.make("A-v1")\nelse:\n    e = f()\no = e.reset()\n',
            'if x:\n    e = gym.make("A-v1")\nelse:\n    e = f()\no = e.reset()\n',
        ),
        (
            "from tfrl.environments import atari_preprocessing as a\n"
            "class P(a.AtariPreprocessing):\n    def step(self, x):\n"
            "        return super().step(x)[0], 0.0, False, {}\n",
            "from tfrl.environments import atari_preprocessing as a\n"
            "class P(a.AtariPreprocessing):\n    def step(self, x):\n"
            "        return super().step(x)[0], 0.0, False, False, {}\n",
        ),
        (
            "from tfrl.environments import suite_gym\n"
            "e = suite_gym.load('A-v1')\ne.render(mode='human')\n"
            "f = suite_gym.load('B-v1')\nf.render(mode='rgb_array')\n",
            "from tfrl.environments import suite_gym\n"
            'e = suite_gym.load(\'A-v1\', gym_kwargs={"render_mode": "human"})\n'
            "e.render(mode='human')\n"
            "f = suite_gym.load('B-v1')\nf.render(mode='rgb_array')\n",
        ),
        (
            'e = gym.make("A-v1")\ne.render(mode=m)\ne.render("human")\n',
            'e = gym.make("A-v1")\ne.render(mode=m)\ne.render("human")\n',
        ),
        (
            'e = gym.make("A-v1")\nself.o = e.reset()\na = b = e.reset()\n'
            "a, b, c = e.reset()\no, r, done, *x = e.step(0)\n",
            'e = gym.make("A-v1")\nself.o, _ = e.reset()\na = b = e.reset()[0]\n'
            "a, b, c = e.reset()[0]\no, r, terminated, truncated, *x = e.step(0)\n"
            "done = terminated or truncated\n",
        ),
        (
            'e = gym.make("A-v1")\ndef f():\n    return e.reset()\n',
            'e = gym.make("A-v1")\ndef f():\n    return e.reset()[0]\n',
        ),
        (
            "class E(gym.Env):\n    def reset(\n        self,  # it walks\n    ):\n"
            "        super().reset()\n        return 1\n",
            "class E(gym.Env):\n    def reset(\n"
            "        self, *, seed=None, options=None,  # it walks\n    ):\n"
            "        super().reset()\n        return 1, {}\n",
        ),
        # Names of environments where they are loaded, and nowhere else.
        (
            "n = 'Taxi-v3'\nm = 'Taxi-v3'\ne = gym.make(n)\n",
            "n = 'Taxi-v4'\nm = 'Taxi-v3'\ne = gym.make(n)\n",
        ),
        (
            'e = gym.make("PongNoFrameskip-v4")\n',
            'e = gym.make("ale_py:PongNoFrameskip-v4")\n',
        ),
    ],
)
def test_a_piece_of_a_program_is_moved(before, after, moved):
    assert moved(before)[0] == after
    assert moved(after)[0] == after


WRAPPER = """
class Half(gym.Wrapper):
    def reset(self, **kwargs):
        obs = self.env.reset(**kwargs)
        return obs / 2

    def step(self, action):
        obs, reward, done, info = self.env.step(action)
        return obs / 2, reward, done, info
"""


def test_a_wrapper_hands_on_both_flags(moved):
    text, _ = moved(WRAPPER)
    assert "obs, _ = self.env.reset(**kwargs)\n        return obs / 2, {}" in text
    assert "return obs / 2, reward, terminated, truncated, info" in text


def test_an_environment_of_gym_0_22_returns_an_info_too(moved):
    source = (
        "class E(gym.Env):\n"
        "    def reset(self, *, seed=None, options=None):\n        return self.x\n"
        "    def step(self, a):\n        return self.x, 1.0, False, {}\n"
    )
    text, _ = moved(source)
    assert text == source.replace("self.x\n", "self.x, {}\n").replace(
        "False, {}", "False, False, {}"
    )
    assert moved(text)[0] == text


def test_a_moved_environment_runs_in_gymnasium(moved, monkeypatch):
    """Gymnasium's own checker judges the environment of the rule's example."""
    from gymnasium.utils import env_checker

    source = (
        "\nclass Walk(gym.Env):\n"
        "    metadata = {'render.modes': []}\n"
        "    def __init__(self):\n"
        "        self.action_space = gym.spaces.Discrete(2)\n"
        "        self.observation_space = gym.spaces.Box(-9., 9., (1,), np.float32)\n"
        "    def reset(self):\n"
        "        self.x = np.float32(self.np_random.randint(3))\n"
        "        return np.array([self.x], np.float32)\n"
        "    def step(self, action):\n"
        "        if abs(self.x) > 5: return self._end()\n"
        "        self.x += 2. * action - 1.\n"
        "        return np.array([self.x], np.float32), 1., False, {}\n"
        "    def _end(self):\n"
        "        return np.array([self.x], np.float32), 0., True, {}\n"
    )
    text, notes = moved(
        source,
        head="import gymnasium as gym\nimport numpy as np\n# tfrl\nimport tfrl\n",
    )
    assert notes == []
    namespace = {}
    exec("import gymnasium as gym, numpy as np\n" + text, namespace)
    env_checker.check_env(namespace["Walk"](), skip_render_check=True)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "import tensorflow as tf\ns = tf.Session()\n",
            "tensorflow.Session: TensorFlow 2 has no sessions",
        ),
        (
            "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n",
            "tensorflow.disable_v2_behavior: TensorFlow 2 has no sessions",
        ),
        (
            "import tensorflow as tf\ntf.compat.v1.keras.backend.set_session(s)\n",
            "keras.backend.set_session: delete this line",
        ),
        (
            "from gym.envs.classic_control import rendering\n",
            "gymnasium.envs.classic_control.rendering: gym's viewer drew with pyglet",
        ),
        (
            "x = info['TimeLimit.truncated']\n",
            "Gymnasium's info has no TimeLimit.trunc",
        ),
        (
            "from tensorflow.python.keras.layers import recurrent as r\n"
            "class C(r.AbstractRNNCell): pass\n",
            "keras.layers.AbstractRNNCell: write the layer as",
        ),
        ("x = model.predict_classes(y)\n", "Keras has no predict_classes: np.argmax("),
        ("m.save_weights(path)\n", "Keras 3 takes a name that ends with .weights.h5"),
        (
            "from tfrl.agents.dqn import dqn_agnt\n",
            "tfrl has no name dqn_agnt in tfrl.agents.dqn.",
        ),
        ("from acme.agents.jax import sac\n", "tfrl.acme.agents.jax: Acme has it"),
        (
            "from tf_agents.examples.ppo.schulman17 import train_eval_lib\n",
            "tfrl.examples.ppo.schulman17: tfrl has no examples; import your own copy",
        ),
        (
            "from gym.utils import atomic_write\n",
            "gymnasium has no name atomic_write in gymnasium.utils.",
        ),
        (
            "import gym.benchmarks.scoring\n",
            "gymnasium has no module gymnasium.benchmarks.",
        ),
        (
            "import gym\nw = gym.wrappers.Monitor(e)\n",
            "gymnasium.wrappers.Monitor: use gymnasium.wrappers.RecordVideo",
        ),
        ("def f(e):\n    o, r, d, i = e.step(0)\n", "e.step gives four values here"),
        (
            "import keras\nx = keras.optimizers.Adam(1e-3, decay=1e-5)\n",
            "Keras 3 ignores decay=",
        ),
        (
            "import gym\nclass E(gym.Env):\n    def step(self, a):\n"
            "        return f()\n",
            "step returns terminated and",
        ),
        (
            "from tf_agents.environments import py_environment as p\n"
            "class E(p.PyEnvironment):\n    def step(self, a): return 1\n",
            "PyEnvironment has its own step: write _step.",
        ),
        (
            "from gym.envs.classic_control import CartPoleEnv\n"
            "class E(CartPoleEnv): pass\ne = E()\ne.render()\n",
            "give the base class of E a render_mode.",
        ),
        (
            "import gym\nw = W(gym.make('A-v1'))\n"
            "def f(e): return e.environment.render(mode='rgb_array')\n",
            "give gym.make render_mode='rgb_array' to draw it.",
        ),
        (
            "from tfrl.environments import suite_gym\n"
            "e = suite_gym.load('A-v1')\ne.render('human')\no = e.reset()\n",
            "reset the environment before it is drawn.",
        ),
        (
            "import gym\nclass E(gym.Env):\n    def render(self, mode='human'): pass\n",
            "Gymnasium gives render no mode",
        ),
        ("import gin\n", "tfrl brings no gin: pip install gin-config."),
        ("from sonnet import nets\n", "tfrl brings no sonnet: pip install dm-sonnet."),
        (
            "import mujoco_py\n",
            "mujoco_py: Gymnasium's environments use mujoco.",
        ),
        ("x = 'Hopper-v2'\n", "Gymnasium has Hopper-v4 instead of Hopper-v2."),
    ],
)
def test_what_a_person_must_decide_is_listed(source, expected, moved):
    text, notes = moved(source, head="import tfrl\n")
    assert [told for _, _, told in notes if told.startswith(expected)]
    again, notes_again = moved(text, head="import tfrl\n")
    assert again == text
    assert [x[2] for x in notes_again] == [x[2] for x in notes]


@pytest.mark.slow
def test_names_that_moved_are_where_the_table_says():
    """It imports TensorFlow."""
    assert len(names.TABLES["places"]) >= 12
    for old, new in names.TABLES["places"].items():
        if names.explanation(new):  # Acme's agents that tfrl does not have.
            continue
        module, _, name = new.rpartition(".")
        imported = importlib.import_module(module)
        assert hasattr(imported, name) or importlib.import_module(new), old


def test_gymnasium_has_the_new_names():
    for new in names.TABLES["gym"].values():
        module, _, name = new.rpartition(".")
        if importlib.util.find_spec(module) and not name.endswith("_v4"):
            assert hasattr(importlib.import_module(module), name), new
        else:
            assert importlib.util.find_spec(new), new


def test_names_of_tfrl_have_no_explanation():
    """The names of the tables of TF-Agents' and Acme's names, as they are here."""
    assert names.explanation("tfrl.agents.dqn.dqn_agent.DqnAgent") is None
    assert names.explanation("tfrl.acme.tf.networks.LayerNormMLP") is None
    assert names.explanation("tfrl.trajectories.time_step.TimeStep") is None
    assert names.explanation("tfrl.nothing.there") == "tfrl has no module tfrl.nothing."


def test_numpy_lacks_the_old_names_and_has_the_new_ones():
    import numpy as np

    is_newest = np.lib.NumpyVersion(np.__version__) >= "2.4.0"
    for old, new in names.TABLES["numpy"].items():
        with warnings.catch_warnings(action="ignore"):
            # Until NumPy 2.4 some were only deprecated.
            assert not (is_newest and hasattr(np, old.removeprefix("numpy.")))
        root, _, name = new.removeprefix("-").partition(".")
        assert not name or operator.attrgetter(name)(sys.modules[root])


@pytest.mark.slow
def test_tensorflow_and_keras_lack_the_old_names_and_have_the_new_ones():
    import keras
    import tensorflow as tf

    roots = {"tensorflow": tf, "keras": tf.keras}

    def has(full):
        root, *parts = full.split(".")
        found = roots[root]
        for part in parts:
            found = getattr(found, part, None)
        return found is not None

    for old, new in names.TABLES["tensorflow"].items():
        assert has(new), new
        assert not has(old), old
    for new in names.TABLES["keras"].values():
        assert new.startswith('"') or has(new), new
        if new.startswith('"'):
            keras.losses.Huber(reduction=new.strip('"'))
