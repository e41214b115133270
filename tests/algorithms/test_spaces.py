import functools
import pathlib
import re

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
import tree
from gymnasium import spaces

import tfrl
from tests.agents import every_agent
from tests.pairs import some_slow
from tfrl import agents, environments, networks
from tfrl.agents.ppo import ppo_networks
from tfrl.algorithms import spaces as fitting
from tfrl.environments import suite_gym, wrappers
from tfrl.specs import array_spec, tensor_spec
from tfrl.specs.gym_spaces import spec_from_gym_space
from tfrl.trajectories import trajectory

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "environments.md"
CHOICE = spaces.Discrete(3)
VECTOR = spaces.Box(-1, 1, (3,), np.float32)
FORCE = spaces.Box(-2, 2, (2,), np.float32)


class Tiny(gymnasium.Env):
    """Observes and rewards at random for five steps, and checks actions."""

    def __init__(self, observation_space, action_space):
        self.observation_space = observation_space
        self.action_space = action_space

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), (action, self.action_space)
        self.steps += 1
        return self.observation_space.sample(), 1.0, self.steps == 5, False, {}


def fit(observation_space, action_space, kind):
    """The environment as an algorithm of a kind takes it."""
    environment = suite_gym.wrap_env(Tiny(observation_space, action_space))
    environment = fitting.fit_actions(
        environment, kind, "This", "Tiny-v0", clip=kind == "any"
    )
    fitting.check_actions(environment.action_spec(), kind, "This", "Tiny-v0")
    environment.seed(0)
    return environments.TFPyEnvironment(environment)


def act_and_train(agent, environment, num_steps):
    """Collects some steps, trains on them once, and returns the loss."""
    time_step, frames = environment.reset(), []
    policy_state = agent.collect_policy.get_initial_state(1)
    for _ in range(num_steps):
        action = agent.collect_policy.action(time_step, policy_state)
        policy_state = action.state
        following = environment.step(action.action)
        frames.append(trajectory.from_transition(time_step, action, following))
        time_step = following
    agent.policy.action(time_step, agent.policy.get_initial_state(1))
    experience = tf.nest.map_structure(lambda *x: tf.stack(x, 1), *frames)
    return float(agent.train(experience).loss)


def make_ppo(environment):
    specs = environment.time_step_spec(), environment.action_spec()
    actor, critic = ppo_networks.create_networks(
        specs[0].observation, specs[1], (8,), seed=0
    )
    return agents.PPOClipAgent(
        *specs,
        keras.optimizers.Adam(1e-3),
        actor_net=actor,
        value_net=critic,
        num_epochs=1,
        normalize_observations=False,
        seed=0,
    )


def make_dqn(environment):
    specs = environment.observation_spec(), environment.action_spec()
    return agents.DqnAgent(
        environment.time_step_spec(),
        specs[1],
        networks.QNetwork(
            *specs,
            fc_layer_params=(8,),
            seed=0,
            **networks.observation_encoder(specs[0]),
        ),
        keras.optimizers.Adam(1e-3),
        seed=0,
    )


def make_sac(environment):
    specs = environment.observation_spec(), environment.action_spec()
    return agents.SacAgent(
        environment.time_step_spec(),
        specs[1],
        networks.CriticEnsembleNetwork(
            specs,
            num_critics=2,
            fc_layer_params=(8,),
            seed=1,
            **networks.observation_encoder(specs[0], for_critic=True),
        ),
        networks.ActorDistributionNetwork(
            *specs,
            fc_layer_params=(8,),
            continuous_projection_net=functools.partial(
                agents.sac.TanhNormalProjectionNetwork,
                std_transform=agents.sac.std_clip_transform,
            ),
            seed=0,
            **networks.observation_encoder(specs[0]),
        ),
        *(keras.optimizers.Adam(1e-3) for _ in range(3)),
        seed=0,
    )


def make_mpo(environment):
    specs = environment.observation_spec(), environment.action_spec()
    return agents.DmpoAgent(
        environment.time_step_spec(),
        specs[1],
        networks.Sequential(
            [
                *filter(None, [fitting.observation_network(specs[0], seed=2)]),
                networks.LayerNormMLP((8,), activate_final=True),
                networks.MultivariateNormalDiagHead(
                    specs[1].shape.num_elements(), use_tfd_independent=True
                ),
            ],
            seed=0,
        ),
        networks.Sequential(
            [
                networks.CriticMultiplexer(
                    observation_network=fitting.observation_network(specs[0], seed=3)
                ),
                networks.LayerNormMLP((8,), activate_final=True),
                networks.DiscreteValuedHead(-10.0, 10.0, 5),
            ],
            seed=1,
        ),
        *(keras.optimizers.Adam(1e-3) for _ in range(3)),
        num_samples=3,
        seed=0,
    )


def of_both(make_continuous):
    """Returns what makes an agent of one discrete action, or of continuous ones."""

    def make(environment):
        is_discrete = fitting.is_one_choice(environment.action_spec())
        return (make_dqn if is_discrete else make_continuous)(environment)

    return make


# The algorithms that stand for their kind in the page's tables.
MAKERS = {
    "any": (make_ppo, 6),
    "discrete": (make_dqn, 2),
    "continuous": (make_sac, 2),
    "vector": (make_mpo, 6),
    "discrete or continuous": (of_both(make_sac), 2),
    "discrete or vector": (of_both(make_sac), 2),
}
ACTIONS = {
    "any": CHOICE,
    "discrete": CHOICE,
    "continuous": FORCE,
    "vector": FORCE,
    "discrete or continuous": FORCE,
    "discrete or vector": FORCE,
}


def train(kind, observation_space=VECTOR, action_space=None):
    make, num_steps = MAKERS[kind]
    action_space = ACTIONS[kind] if action_space is None else action_space
    environment = fit(observation_space, action_space, kind)
    agent = make(environment)
    agent.initialize()
    assert np.isfinite(act_and_train(agent, environment, num_steps))


def image(*shape):
    return spaces.Box(0, 255, shape, np.uint8)


# For each row of a table of the page the spaces that it is about.
OBSERVATIONS = {
    "`Box` of floats": [
        VECTOR,
        spaces.Box(-np.inf, np.inf, (2, 3), np.float32),
        spaces.Box(-1, 1, (), np.float32),
        spaces.Box(-1, 1, (3,), np.float64),
    ],
    "`Box`, an image": [image(9, 9, 3), image(3, 9, 9), image(9, 9)],
    "`Box` of integers": [
        spaces.Box(0, 9, (3,), np.int32),
        spaces.Box(0, 20_000, (3,), np.int64),
        spaces.Box(0, 1, (3,), np.bool_),
    ],
    "`Discrete`, with any `start`": [spaces.Discrete(5, start=-2)],
    "`MultiDiscrete`": [spaces.MultiDiscrete([2, 3], start=[1, -1])],
    "`MultiBinary`": [spaces.MultiBinary(4), spaces.MultiBinary((2, 2))],
    "`Tuple`, `Dict`, also nested": [
        spaces.Tuple((spaces.Discrete(3), VECTOR)),
        spaces.Dict({"eye": image(9, 9, 3), "more": spaces.Dict({"a": CHOICE})}),
    ],
    "`Text`": [spaces.Text(5)],
    "`Sequence`": [spaces.Sequence(CHOICE)],
    "`Graph`": [spaces.Graph(VECTOR, None)],
    "`OneOf`": [spaces.OneOf((CHOICE, VECTOR))],
}
ACTION_SPACES = {
    "`Discrete`, with any `start`": [CHOICE, spaces.Discrete(3, start=-5)],
    "`MultiDiscrete`, `MultiBinary`, `Box` of integers": [
        spaces.MultiDiscrete([2, 3], start=[1, -1]),
        spaces.MultiBinary((2, 2)),
        spaces.Box(0, 2, (2,), np.int32),
    ],
    "`Box` of floats with bounds": [
        FORCE,
        spaces.Box(-0.1, 0.1, (2,), np.float64),
        spaces.Box(-2, 2, (), np.float32),
        spaces.Box(-2, 2, (2, 2), np.float32),
    ],
    "`Box` of floats without bounds": [spaces.Box(-np.inf, np.inf, (2,), np.float32)],
    "`Tuple`, `Dict` of discrete actions": [spaces.Tuple((CHOICE, CHOICE))],
    "`Tuple`, `Dict` of continuous actions": [spaces.Dict({"a": FORCE, "b": VECTOR})],
    "`Tuple`, `Dict` of both": [spaces.Dict({"a": FORCE, "b": CHOICE})],
    "`Text`": [spaces.Text(5)],
    "`Sequence`": [spaces.Sequence(CHOICE)],
    "`Graph`": [spaces.Graph(VECTOR, None)],
    "`OneOf`": [spaces.OneOf((CHOICE, VECTOR))],
}


def table(head):
    """The rows of a table of the page: the cells by the row's name."""
    lines = PAGE.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {head} |"))
    rows = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = cells
    return rows


def cases():
    """A case for each space of each row: PPO's first of a row is fast."""
    for name, observation_spaces in OBSERVATIONS.items():
        for i, space in enumerate(observation_spaces):
            for kind in MAKERS:
                slow = () if i == 0 and kind == "any" else pytest.mark.slow
                yield pytest.param(
                    "observation",
                    name,
                    kind,
                    space,
                    id=f"{name}-{i}-{kind}",
                    marks=slow,
                )
    for name, action_spaces in ACTION_SPACES.items():
        for i, space in enumerate(action_spaces):
            for kind in MAKERS:
                slow = () if i == 0 and kind == "any" else pytest.mark.slow
                yield pytest.param(
                    "action", name, kind, space, id=f"{name}-{i}-{kind}", marks=slow
                )


@pytest.mark.parametrize(("role", "name", "kind", "space"), list(cases()))
def test_the_pages_table_says_what_is_trained_and_what_refused(role, name, kind, space):
    cells = table(role)[name]
    cell = cells[list(MAKERS).index(kind) if len(cells) > 1 else 0]
    words = re.search('"(.*)"', cell.replace("...", ".*"))
    given = {f"{role}_space": space}
    if words is None:
        train(kind, **given)
        return
    with pytest.raises(ValueError, match=words[1]):
        train(kind, **given)


def test_the_pages_tables_have_a_row_for_each_space():
    assert table("observation").keys() == OBSERVATIONS.keys()
    assert table("action").keys() == ACTION_SPACES.keys()


OF_A_VECTOR = ("MpoAgent", "DmpoAgent", "CqlSacAgent")
FLOATING = [
    name
    for name, kind in every_agent.KINDS.items()
    if kind.action_spec is every_agent.FORCE
    or name in ("ReinforceAgent", "A2CAgent", "ImpalaAgent")
]


@pytest.mark.parametrize("name", some_slow(FLOATING, fast=["PPOAgent", "SacAgent"]))
def test_every_agent_learns_actions_of_float64(name):
    kind = "any" if name.startswith(("Reinf", "A2C", "PPO", "Impala")) else "continuous"
    # 0.1 is smaller in float64 than in float32, and the environment checks it.
    space = spaces.Box(-0.1, np.array([0.1, 3.0]), (2,), np.float64)
    environment = fit(VECTOR, space, "vector" if name in OF_A_VECTOR else kind)
    agent = every_agent.KINDS[name].make(
        environment.time_step_spec(), environment.action_spec()
    )
    is_episodic = kind == "any"
    steps = 6 if is_episodic else agent.train_sequence_length or 3
    assert np.isfinite(act_and_train(agent, environment, steps))


def message_of(space, kind, title="This", name="Tiny-v0", **options):
    spec = spec_from_gym_space(space)
    with pytest.raises(ValueError, match=r"^environment: got ") as error:
        fitting.check_actions(spec, kind, title, name, **options)
    with pytest.raises(ValueError, match=re.escape(str(error.value))):
        fitting.check_actions(tensor_spec.from_spec(spec), kind, title, name, **options)
    return str(error.value).removeprefix("environment: got ")


def test_errors_say_what_is_wrong_and_what_to_train():
    one = spaces.Box(-2, 2, (1,), np.float32)
    assert message_of(one, "discrete", "DQN", "Pendulum-v1", has_bins=True) == (
        "'Pendulum-v1', whose actions are continuous, but DQN chooses among discrete "
        "ones; set num_action_bins=11, for example, or train SAC: "
        'tfrl.SAC("Pendulum-v1"), or tfrl train sac --env=Pendulum-v1.'
    )
    assert "num_action_bins" not in message_of(FORCE, "discrete", has_bins=True)
    assert message_of(CHOICE, "continuous", "TD3", "") == (
        "one, whose actions are discrete, but TD3 chooses continuous ones; train DQN: "
        "tfrl.DQN(environment)."
    )
    both = spaces.Dict({"a": FORCE, "b": CHOICE})
    for kind in ("discrete", "continuous", "vector"):
        assert "partly continuous, but This" in message_of(both, kind)
        assert 'train PPO: tfrl.PPO("Tiny-v0")' in message_of(both, kind)
    free = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    assert "have no finite bounds, onto which This" in message_of(free, "continuous")
    # These have not gone through `fit_actions`.
    several = message_of(spaces.MultiDiscrete([2, 3]), "discrete")
    assert "whose action is choices of 2 and 3, but" in several
    assert "are not a single vector" in message_of(spaces.Box(-1, 1, ()), "vector")
    assert "which has no actions" in message_of(spaces.Dict({}), "any")


def test_errors_of_algorithms_of_recorded_data_name_one_that_learns_from_data():
    message = message_of(CHOICE, "continuous", "EDAC", "CartPole-v1", is_offline=True)
    assert message == (
        "'CartPole-v1', whose actions are discrete, but EDAC chooses continuous ones; "
        'train CQL: tfrl.CQL("CartPole-v1", data=data), or tfrl train cql '
        "--env=CartPole-v1."
    )
    both = spaces.Dict({"a": FORCE, "b": CHOICE})
    assert message_of(both, "discrete or vector", "CQL", "", is_offline=True) == (
        "one, whose actions are partly discrete and partly continuous, but CQL chooses "
        "among discrete ones or a continuous vector; train BC: "
        "tfrl.BC(environment, data=data)."
    )
    several = message_of(
        spaces.Box(-1, 1, ()), "discrete or vector", "CQL", "", is_offline=True
    )
    assert several.endswith("train IQL: tfrl.IQL(environment, data=data).")
    with pytest.raises(ValueError, match=r"train CQL: tfrl.CQL"):
        tfrl.EDAC("CartPole-v1", data={}).build()


MASK = spaces.MultiBinary(3)


@pytest.mark.parametrize(
    ("mask", "action", "expected"),
    [
        (MASK, CHOICE, True),
        (spaces.Box(0, 1, (3,), np.int8), spaces.Discrete(3, start=2), True),
        (spaces.Box(0, 1, (3,), np.float32), CHOICE, True),
        (spaces.Box(0, 5, (3,), np.int8), CHOICE, False),
        (spaces.MultiBinary(4), CHOICE, False),
        (MASK, spaces.MultiDiscrete([2, 2]), False),
        (MASK, FORCE, False),
        (spaces.Dict(a=MASK), CHOICE, False),
        (None, CHOICE, False),
    ],
)
def test_a_part_of_an_observation_that_fits_the_action_is_a_mask(
    mask, action, expected
):
    parts = {"seen": VECTOR} if mask is None else {"seen": VECTOR, "action_mask": mask}
    observation = spec_from_gym_space(spaces.Dict(parts))
    for specs in (observation, tensor_spec.from_spec(observation)):
        assert fitting.has_mask(specs, spec_from_gym_space(action)) is expected
    assert not fitting.has_mask(spec_from_gym_space(VECTOR), None)


def test_networks_see_what_is_beside_the_mask():
    assert fitting.split_mask({"a": 1, "action_mask": 2}) == (1, 2)
    more = {"a": 1, "b": 3, "action_mask": 2}
    assert fitting.split_mask(more) == ({"a": 1, "b": 3}, 2)


def test_too_many_combinations_are_an_error_that_names_ppo():
    with pytest.raises(
        ValueError,
        match=r"'Big-v0', whose actions have 2,048 combinations, but DQN .* at most "
        r'1,024; train PPO: tfrl.PPO\("Big-v0"\), .* larger max_actions',
    ):
        fitting.fit_actions(
            suite_gym.wrap_env(Tiny(VECTOR, spaces.MultiBinary(11))),
            "discrete",
            "DQN",
            "Big-v0",
        )
    with pytest.raises(ValueError, match=r"more than 10\^12 combinations"):
        fitting.fit_actions(
            suite_gym.wrap_env(Tiny(VECTOR, spaces.MultiBinary(99))), "discrete"
        )
    with pytest.raises(ValueError, match=r"train BC: tfrl.BC\(environment, data=data"):
        fitting.fit_actions(
            suite_gym.wrap_env(Tiny(VECTOR, spaces.MultiBinary(11))),
            "discrete or continuous",
            "IQL",
            is_offline=True,
        )
    # One action may have any number of values.
    large = suite_gym.wrap_env(Tiny(VECTOR, spaces.Discrete(5_000, start=3)))
    assert fitting.fit_actions(large, "discrete").action_spec().maximum == 4_999


def test_environments_that_fit_are_not_wrapped():
    for space, kind in (
        (CHOICE, "discrete"),
        (FORCE, "continuous"),
        (FORCE, "vector"),
        (FORCE, "discrete"),
        (CHOICE, "vector"),
        (spaces.MultiDiscrete([2, 3]), "any"),
    ):
        environment = suite_gym.wrap_env(Tiny(VECTOR, space))
        assert fitting.fit_actions(environment, kind) is environment


def test_actions_are_clipped_if_asked_for():
    space = spaces.Dict({"a": FORCE, "b": CHOICE})
    environment = suite_gym.wrap_env(Tiny(VECTOR, space))
    fitted = fitting.fit_actions(environment, "any", clip=True)
    fitted.reset()
    action = {"a": np.float32([5, -1]), "b": np.int64(2)}
    assert not fitted.step(action).is_last()
    inner = fitting.original_action(fitted, environment, action)
    assert inner["a"].tolist() == [2, -1]
    assert fitting.fit_actions(environment, "any") is environment
    discrete = suite_gym.wrap_env(Tiny(VECTOR, CHOICE))
    assert fitting.fit_actions(discrete, "any", clip=True) is discrete


def test_an_action_of_the_fitted_environment_leads_back_to_the_original_one():
    space = spaces.Dict(
        {"b": spaces.Box(-1, 1, (2, 1), np.float64), "a": spaces.Box(0, 3, ())}
    )
    environment = suite_gym.wrap_env(Tiny(VECTOR, space))
    fitted = fitting.fit_actions(environment, "vector")
    assert fitted.action_spec().shape == (3,)
    action = fitting.original_action(fitted, environment, np.float32([2, 0.5, -0.5]))
    assert space.contains(action)
    assert (action["a"], action["b"].tolist()) == (2, [[0.5], [-0.5]])
    assert fitting.original_action(environment, environment, 3) == 3


def members_in_turn(make):
    members = [suite_gym.wrap_env(make()) for _ in "abc"]
    return environments.BatchedPyEnvironment(members, multithreading=False)


def vector_environment(make):
    return environments.VectorPyEnvironment(gymnasium.vector.SyncVectorEnv([make] * 3))


@pytest.mark.parametrize("batch_of", [members_in_turn, vector_environment])
def test_batches_are_fitted(batch_of):
    batch = batch_of(lambda: Tiny(VECTOR, spaces.MultiBinary(2)))
    fitted = fitting.fit_actions(batch, "discrete")
    assert isinstance(fitted, wrappers.EnumerateActionsWrapper)
    fitted.reset()
    assert fitted.step(np.int32([0, 3, 1])).reward.tolist() == [1, 1, 1]
    inner = fitting.original_action(fitted, batch, np.int32([0, 3]))
    assert inner.tolist() == [[0, 0], [1, 1]]


def test_a_line_describes_observations_and_actions():
    def describe(observation_space, action_space):
        return fitting.describe(
            spec_from_gym_space(observation_space), spec_from_gym_space(action_space)
        )

    assert describe(image(84, 84, 4), spaces.Discrete(6)) == (
        "observation [84, 84, 4]: image, convolutions (32, 8, 4), (64, 4, 2), "
        "(64, 3, 1); action: one of 6"
    )
    both = spaces.Dict({"a": FORCE, "b": spaces.Tuple((CHOICE,))})
    assert describe(VECTOR, both) == (
        "observation [3]: as it is; action a: 2 numbers from -2 to 2; action b/0: one "
        "of 3"
    )
    for space, words in (
        (spaces.MultiDiscrete([2, 3, 4]), "choices of 2, 3 and 4"),
        (spaces.MultiBinary(4), "4 choices of 2"),
        (spaces.Box(-np.inf, np.inf, ()), "a number without bounds"),
        (spaces.Box(np.float32([0, -1]), np.float32([1, 1])), "with bounds"),
    ):
        assert describe(VECTOR, space).endswith(words)
    unbounded = array_spec.ArraySpec((2,), np.int32)
    line = fitting.describe(spec_from_gym_space(VECTOR), unbounded)
    assert line.endswith("action: 2 integers")


def test_networks_of_vectors_get_a_network_for_other_observations():
    floats = spaces.Dict({"a": VECTOR, "b": spaces.Box(-1, 1, (2,), np.float64)})
    for space in (VECTOR, floats, spaces.Box(-1, 1, (), np.float32)):
        spec = tensor_spec.from_spec(spec_from_gym_space(space))
        assert fitting.observation_network(spec) is None
    for space, size in (
        (CHOICE, 3),
        (spaces.Dict({"a": VECTOR, "b": CHOICE}), 6),
        (spaces.Box(0, 1, (5, 5, 1), np.float32), 32),
    ):
        spec = tensor_spec.from_spec(spec_from_gym_space(space))
        network = fitting.observation_network(spec, seed=1)
        assert network.create_variables().shape == (size,)


@pytest.mark.parametrize(
    ("space", "kind", "actions"),
    [
        (spaces.Box(-1, 2, (3,)), "any", [[-9.0, 0.5, 9.0]] * 4),
        (spaces.MultiDiscrete([2, 3]), "discrete", [0, 5, 3, 1]),
        (spaces.Discrete(3, start=-1), "discrete", [0, 2, 1, 1]),
        (
            spaces.Dict(
                a=spaces.Box(-1, 2, (), np.float64),
                b=spaces.Box(-1, 1, (2, 1)),
            ),
            "vector",
            [[0.5, -1, 1], [2, 0, 0.3], [-1, -1, -1], [0, 0, 0]],
        ),
    ],
)
def test_tensors_become_the_same_original_actions_as_arrays(space, kind, actions):
    class Env(gymnasium.Env):
        observation_space = spaces.Box(-1, 1, (2,))
        action_space = space

    environment = suite_gym.wrap_env(Env())
    fitted = fitting.fit_actions(environment, kind, clip=True)
    dtype = np.int32 if kind == "discrete" else np.float32
    action = np.array(actions, dtype)
    expected = fitting.original_action(fitted, environment, action)
    got = fitting.original_tensors(fitted, environment, tf.constant(action))
    tree.assert_same_structure(got, expected)
    for x, y in zip(tree.flatten(got), tree.flatten(expected), strict=True):
        np.testing.assert_array_equal(x, y)
        assert x.dtype.as_numpy_dtype == y.dtype
