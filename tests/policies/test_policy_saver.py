"""`PolicySaver`: what a SavedModel holds, and that it acts like the live policy."""

import collections
import functools
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tests.policies import saved_elsewhere
from tfrl.networks import (
    actor_distribution_network,
    network,
    normal_projection_network,
    q_network,
)
from tfrl.policies import (
    actor_policy,
    epsilon_greedy_policy,
    greedy_policy,
    policy_loader,
    policy_saver,
    py_tf_eager_policy,
    q_policy,
    random_tf_policy,
    tf_policy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

OBSERVATION = {"x": tf.TensorSpec([4], tf.float32, name="x")}
ACTION = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2, name="action")
TIME_STEP = ts.time_step_spec(OBSERVATION)


class Echo(network.Network):
    """Says that the value of each action is the observation's entry."""

    num_calls = 0

    def call(self, observation):
        self.num_calls += 1
        return observation["x"][..., :3], ()


class Counting(tf_policy.TFPolicy):
    """Acts with its state, a counter; uses a variable that no network holds."""

    def __init__(self):
        super().__init__(
            TIME_STEP, ACTION, policy_state_spec=[tf.TensorSpec([], tf.int64)]
        )
        self.stride = tf.Variable(1, dtype=tf.int64)

    def _variables(self):
        return []

    def _action(self, time_step, policy_state, seed):
        return policy_step.PolicyStep(policy_state[0], [policy_state[0] + self.stride])


class Lookup(tf_policy.TFPolicy):
    """Acts by a table."""

    def __init__(self):
        super().__init__(TIME_STEP, ACTION)
        pairs = tf.lookup.KeyValueTensorInitializer(
            tf.constant([1], tf.int64), tf.constant([2], tf.int64)
        )
        self.table = tf.lookup.StaticHashTable(pairs, default_value=0)

    def _variables(self):
        return []

    def _action(self, time_step, policy_state, seed):
        return policy_step.PolicyStep(
            self.table.lookup(tf.cast(time_step.observation["x"][:, 0], tf.int64))
        )


def q_net(seed=0):
    return q_network.QNetwork(
        OBSERVATION,
        ACTION,
        preprocessing_combiner=None,
        fc_layer_params=(8,),
        seed=seed,
    )


def make_q_policy(seed=0, **kwargs):
    return q_policy.QPolicy(TIME_STEP, ACTION, q_net(seed), **kwargs)


def make_actor_policy(seed=0):
    net = actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION, ACTION, fc_layer_params=(8,), seed=seed
    )
    return actor_policy.ActorPolicy(TIME_STEP, ACTION, net)


def make_squashed():
    """A policy of two actions, one of them squashed into its bounds as SAC's is."""
    spec = {
        "move": tensor_spec.BoundedTensorSpec([2], tf.float32, -1, 3),
        "jump": ACTION,
    }
    net = actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION,
        spec,
        fc_layer_params=(8,),
        seed=0,
        continuous_projection_net=lambda action: (
            normal_projection_network.NormalProjectionNetwork(
                action, scale_distribution=True, seed=0
            )
        ),
    )
    return actor_policy.ActorPolicy(TIME_STEP, spec, net)


def make_epsilon_greedy(epsilon=0.5):
    return epsilon_greedy_policy.EpsilonGreedyPolicy(make_q_policy(), epsilon)


def step(num=5, seed=0, first=False):
    x = np.random.default_rng(seed).normal(size=(num, 4)).astype(np.float32)
    time_step = ts.transition({"x": tf.constant(x)}, tf.zeros([num]))
    if first:
        return time_step._replace(step_type=tf.zeros([num], tf.int32))
    return time_step


def save(policy, path, **kwargs):
    path = str(path / "policy")
    policy_saver.PolicySaver(policy, **kwargs).save(path)
    return path


def make_noisy():
    """A policy whose actions are almost surely never the same twice."""
    spec = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2**40)
    return random_tf_policy.RandomTFPolicy(TIME_STEP, spec, seed=0)


KINDS = {
    "q": make_q_policy,
    "greedy": lambda: greedy_policy.GreedyPolicy(make_q_policy()),
    "epsilon": make_epsilon_greedy,
    "actor": make_actor_policy,
    "noisy": make_noisy,
    "counting": Counting,
    "squashed": make_squashed,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Gives the directory of a policy of `KINDS`, saved once, which tests only read."""

    @functools.cache
    def path_of(kind):
        # A global seed of the saving process must not be frozen into the graph.
        tf.random.set_seed(1)
        return save(KINDS[kind](), tmp_path_factory.mktemp(kind))

    return path_of


@pytest.mark.slow
def test_policies_act_in_a_fresh_process_with_tensorflow_alone(saved, tmp_path):
    kinds = ["q", "epsilon", "actor", "noisy"]
    policies = [KINDS[kind]() for kind in kinds]
    paths = [saved(kind) for kind in kinds]
    time_step, seed = step(64), np.array([5, 6])
    observation = tf.nest.map_structure(np.asarray, time_step.observation)
    actions = saved_elsewhere.act_by_tensorflow_alone(
        paths, observation, seed, tmp_path
    )
    for policy, action in zip(policies, actions, strict=True):
        expected = policy.action(time_step, (), tf.constant(seed)).action
        np.testing.assert_array_equal(action, expected)


def test_a_stateless_policy_is_called_with_and_without_its_empty_state(saved):
    policy = greedy_policy.GreedyPolicy(make_q_policy())
    loaded = tf.saved_model.load(saved("greedy"))
    expected = policy.action(step()).action
    seed = tf.constant([1, 2], tf.int64)
    for arguments in ((), ((),), ((), seed)):
        result = loaded.action(step(), *arguments)
        np.testing.assert_array_equal(result.action, expected)
        assert result.state == ()
    np.testing.assert_array_equal(loaded.action(step(), seed=seed).action, expected)


def test_any_batch_size_unless_one_is_given(saved):
    loaded = tf.saved_model.load(saved("q"))
    assert loaded.action(step(1)).action.shape == [1]
    assert loaded.action(step(9)).action.shape == [9]


def test_a_fixed_batch_size_is_the_only_one(tmp_path):
    loaded = tf.saved_model.load(save(Counting(), tmp_path, batch_size=3))
    state = loaded.get_initial_state()
    assert state[0].shape == [3]
    assert loaded.action(step(3), state).action.shape == [3]
    with pytest.raises(ValueError, match="matching concrete function"):
        loaded.action(step(4), state)


def test_a_state_is_carried_and_reset(saved):
    loaded = tf.saved_model.load(saved("counting"))
    state = loaded.get_initial_state(batch_size=2)
    first = loaded.action(step(2), state)
    second = loaded.action(step(2), first.state)
    np.testing.assert_array_equal(second.action, [1, 1])
    reset = loaded.action(step(2, first=True), second.state)
    np.testing.assert_array_equal(reset.action, [0, 0])


@pytest.mark.slow
def test_copies_loaded_without_seed_explore_differently(saved):
    one, other = (tf.saved_model.load(saved("noisy")) for _ in range(2))
    actions = [model.action(step()).action.numpy() for model in (one, one, other)]
    assert len(np.unique(actions)) == 15


def test_a_seed_input_decides_the_action(saved):
    loaded = tf.saved_model.load(saved("noisy"))
    one, other = (tf.constant([i, 0], tf.int64) for i in (1, 2))
    first = loaded.action(step(), (), one).action.numpy()
    np.testing.assert_array_equal(first, loaded.action(step(), (), one).action)
    assert not np.array_equal(first, loaded.action(step(), (), other).action)


@pytest.mark.slow
def test_a_seed_of_the_saver_makes_all_copies_act_alike(tmp_path):
    path = save(make_noisy(), tmp_path, seed=3)
    one, other = tf.saved_model.load(path), tf.saved_model.load(path)
    first = one.action(step()).action.numpy()
    np.testing.assert_array_equal(first, other.action(step()).action)
    assert not np.array_equal(first, one.action(step()).action)


@pytest.mark.parametrize(
    "kind", some_slow(["q", "greedy", "actor", "squashed"], slow=["actor"])
)
def test_a_distribution_is_the_live_policys(saved, kind):
    policy, loaded = KINDS[kind](), policy_loader.load(saved(kind))
    live = policy.distribution(step()).action
    drawn = policy.action(step(), seed=1).action

    def compare(made, distribution, action):
        assert type(made) is type(distribution)
        log_prob = distribution.log_prob(action)
        np.testing.assert_allclose(made.log_prob(action), log_prob, rtol=1e-5)

    tf.nest.map_structure(compare, loaded.distribution(step()).action, live, drawn)


def test_a_distribution_needs_no_tfp_as_tensors(saved):
    loaded = tf.saved_model.load(saved("q"))
    logits = KINDS["q"]().distribution(step()).action.logits
    for arguments in ((), ((),)):
        tensors = loaded.distribution(step(), *arguments).action
        np.testing.assert_allclose(tensors["logits"], logits, rtol=1e-5)
    greedy = tf.saved_model.load(saved("greedy"))
    np.testing.assert_array_equal(
        greedy.distribution(step()).action["loc"], greedy.action(step()).action
    )


def test_a_policy_without_a_distribution_says_so_when_it_is_asked(saved):
    loaded = policy_loader.load(saved("counting"))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="this policy has no distribution"
    ):
        loaded.distribution(step(), loaded.get_initial_state(5))


def test_signatures_are_keyed_by_nest_paths(saved):
    loaded = tf.saved_model.load(saved("counting"))
    inputs = {
        "0/step_type": step().step_type,
        "0/reward": step().reward,
        "0/discount": step().discount,
        "0/observation/x": step().observation["x"],
        "1/0": tf.fill([5], tf.constant(2, tf.int64)),
    }
    outputs = loaded.signatures["action"](**inputs)
    assert set(outputs) == {"action", "state/0"}
    np.testing.assert_array_equal(outputs["action"], [2] * 5)
    initial = loaded.signatures["get_initial_state"](batch_size=tf.constant(2))
    np.testing.assert_array_equal(initial["0"], [0, 0])


def test_the_signature_for_serving_takes_observations_alone(tmp_path):
    spec = tf.TensorSpec([4], tf.float32)
    network = q_network.QNetwork(spec, ACTION, fc_layer_params=(8,), seed=0)
    drawn = q_policy.QPolicy(ts.time_step_spec(spec), ACTION, network)
    policy = greedy_policy.GreedyPolicy(drawn)
    loaded = tf.saved_model.load(save(policy, tmp_path))
    serve = loaded.signatures["serving_default"]
    assert list(serve.structured_input_signature[1]) == ["observation"]
    observation = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    served = serve(observation=tf.constant(observation))
    assert list(served) == ["action"]
    np.testing.assert_array_equal(served["action"], loaded.predict(observation)[0])


def test_parts_of_an_observation_are_served_by_their_names_and_integers_taken(tmp_path):
    spec = {
        "flags": tf.TensorSpec([4], tf.int32),
        "speed": tf.TensorSpec([], np.float32),
    }
    policy = random_tf_policy.RandomTFPolicy(
        ts.time_step_spec(spec), tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)
    )
    policy_saver.PolicySaver(policy).save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    speed = np.zeros(2, np.float32)
    for dtype in (np.int8, np.int32, np.int64):
        flags = np.zeros((2, 4), dtype)
        assert loaded.predict({"flags": flags, "speed": speed})[0].shape == [2]
    serve = loaded.signatures["serving_default"]
    served = serve(flags=tf.zeros([3, 4], tf.int32), speed=tf.zeros([3]))
    assert served["action"].shape == [3]


def test_signatures_can_be_keyed_by_spec_names(tmp_path):
    path = save(make_q_policy(), tmp_path, use_nest_path_signatures=False)
    signature = tf.saved_model.load(path).signatures["action"]
    inputs = {
        "step_type": step().step_type,
        "reward": step().reward,
        "discount": step().discount,
        "x": step().observation["x"],
    }
    assert set(signature(**inputs)) == {"action"}


def test_spec_names_must_be_there_when_they_are_the_keys():
    spec = ts.time_step_spec({"x": tf.TensorSpec([4], tf.float32)})
    policy = q_policy.QPolicy(spec, ACTION, Echo())
    with pytest.raises(ValueError, match="missing name or a name collision"):
        policy_saver.PolicySaver(policy, use_nest_path_signatures=False)


@pytest.mark.slow
def test_train_step_is_saved_as_it_is_then(tmp_path):
    counter = tf.Variable(7, dtype=tf.int64)
    saver = policy_saver.PolicySaver(make_q_policy(), train_step=counter)
    counter.assign(9)
    assert saver.get_train_step() == 9
    saver.save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.get_train_step().numpy() == 9
    assert next(iter(loaded.signatures["get_train_step"]().values())).numpy() == 9


def test_train_step_is_minus_one_by_default(saved):
    loaded = tf.saved_model.load(saved("q"))
    assert loaded.get_train_step().numpy() == -1


@pytest.mark.slow
def test_metadata_is_saved_as_it_is_then(tmp_path):
    metadata = {"steps": tf.Variable(1), "score": tf.Variable(0.5)}
    saver = policy_saver.PolicySaver(make_q_policy(), metadata=metadata)
    metadata["steps"].assign(3)
    assert saver.get_metadata() == {"steps": 3, "score": 0.5}
    saver.save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.get_metadata()["steps"].numpy() == 3
    assert loaded.signatures["get_metadata"]()["score"].numpy() == 0.5


def test_model_variables_are_the_policys(saved):
    loaded = tf.saved_model.load(saved("q"))
    assert len(loaded.model_variables) == 4
    live = make_q_policy().variables()
    for one, other in zip(loaded.model_variables, live, strict=True):
        np.testing.assert_array_equal(one, other)
    for variable in loaded.model_variables:
        variable.assign(tf.zeros_like(variable))
    greedy = loaded.action(step(), seed=tf.constant([1, 1], tf.int64))
    assert greedy.action.shape == [5]


def test_later_training_changes_what_is_saved(tmp_path):
    policy = greedy_policy.GreedyPolicy(make_q_policy(seed=0))
    saver = policy_saver.PolicySaver(policy)
    other = greedy_policy.GreedyPolicy(make_q_policy(seed=1))
    policy.update(other)
    saver.save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(
        loaded.action(step(50)).action, other.action(step(50)).action
    )


@pytest.mark.slow
def test_variables_outside_the_networks_are_saved_too(tmp_path):
    policy, epsilon = Counting(), tf.Variable(0.0)
    policy.stride.assign(2)
    loaded = tf.saved_model.load(save(policy, tmp_path / "counting"))
    state = loaded.action(step(1), loaded.get_initial_state(1)).state
    np.testing.assert_array_equal(state[0], [2])

    loaded = tf.saved_model.load(
        save(make_epsilon_greedy(lambda: epsilon), tmp_path / "epsilon")
    )
    expected = greedy_policy.GreedyPolicy(make_q_policy()).action(step()).action
    np.testing.assert_array_equal(loaded.action(step()).action, expected)


@pytest.mark.slow
def test_lookup_tables_are_saved(tmp_path):
    loaded = tf.saved_model.load(save(Lookup(), tmp_path))
    time_step = step(2)._replace(observation={"x": tf.constant([[1.0] * 4, [0.0] * 4])})
    np.testing.assert_array_equal(loaded.action(time_step).action, [2, 0])


def test_input_fn_makes_the_time_step_from_an_example(tmp_path):
    def input_fn(example):
        x = example["x"]
        return ts.transition({"x": x}, tf.zeros(tf.shape(x)[:1])), ()

    policy = greedy_policy.GreedyPolicy(make_q_policy())
    example_spec = {"x": tf.TensorSpec([4], tf.float32, name="pixels")}
    path = save(policy, tmp_path, input_fn_and_spec=(input_fn, example_spec))
    loaded = tf.saved_model.load(path)
    expected = policy.action(step()).action
    example = {"x": step().observation["x"]}
    np.testing.assert_array_equal(loaded.action(example).action, expected)
    certain = loaded.distribution(example).action["loc"]
    np.testing.assert_array_equal(certain, expected)
    outputs = loaded.signatures["action"](pixels=example["x"])
    np.testing.assert_array_equal(outputs["action"], expected)


@pytest.mark.slow
def test_functions_can_be_registered(tmp_path):
    net = q_net()
    saver = policy_saver.PolicySaver(q_policy.QPolicy(TIME_STEP, ACTION, net))
    saver.register_function("q_values", lambda o: net(o)[0], OBSERVATION)
    with pytest.raises(ValueError, match="name: got 'q_values'"):
        saver.register_function("q_values", lambda o: o, OBSERVATION)
    scale = tf.Variable(2.0)
    double = tf.function(lambda x: x * scale)
    double.get_concrete_function(tf.TensorSpec([], tf.float32))
    saver.register_concrete_function("double", double, assets=[scale])
    saver.save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    observation = step().observation
    np.testing.assert_allclose(
        loaded.q_values(observation), net(observation)[0], rtol=1e-5
    )
    assert loaded.double(tf.constant(3.0)).numpy() == 6.0


@pytest.mark.slow
def test_a_registered_function_brings_its_variables(tmp_path):
    saver = policy_saver.PolicySaver(make_q_policy())
    scale, shift = tf.Variable(2.0), tf.Variable(1.0)
    double = tf.function(lambda x: x * scale)
    double.get_concrete_function(tf.TensorSpec([], tf.float32))
    saver.register_concrete_function("double", double)
    move = tf.function(lambda x: x + shift)
    saver.register_concrete_function(
        "move", move.get_concrete_function(tf.TensorSpec([], tf.float32))
    )
    saver.save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.double(tf.constant(3.0)).numpy() == 6.0
    assert loaded.move(tf.constant(3.0)).numpy() == 4.0


def test_the_spec_file_is_written_whole_and_last(saved):
    path = pathlib.Path(saved("q"))
    assert (path / policy_saver.POLICY_SPECS_PBTXT).exists()
    assert not list(path.glob("*_temp"))


def test_a_saved_policy_comes_back_on_arrays(tmp_path):
    policy = greedy_policy.GreedyPolicy(make_q_policy())
    path = save(policy, tmp_path, train_step=tf.Variable(4, dtype=tf.int64))
    loaded = py_tf_eager_policy.SavedModelPyTFEagerPolicy(
        path, load_specs_from_pbtxt=True, use_tf_function=True
    )
    assert loaded.get_train_step() == 4
    assert loaded.action_spec.num_values == 3
    assert loaded.time_step_spec.observation["x"].shape == (4,)
    batch = step(5)
    for i, expected in enumerate(policy.action(batch).action.numpy()):
        one = tf.nest.map_structure(lambda t, i=i: t[i].numpy(), batch)
        assert loaded.action(one).action == expected
        assert loaded.action(one, seed=3).action == expected
    assert loaded._policy_action_fn.experimental_get_tracing_count() == 2


def test_a_stateful_saved_policy_runs_on_arrays(saved):
    loaded = py_tf_eager_policy.SavedModelPyTFEagerPolicy(
        saved("counting"), load_specs_from_pbtxt=True
    )
    one = tf.nest.map_structure(lambda t: t[0].numpy(), step(1))
    first = loaded.action(one, loaded.get_initial_state())
    assert loaded.action(one, first.state).action == 1


def test_a_checkpoint_updates_a_loaded_policy(tmp_path):
    policy = greedy_policy.GreedyPolicy(make_q_policy(seed=0))
    counter = tf.Variable(1, dtype=tf.int64)
    saver = policy_saver.PolicySaver(policy, train_step=counter)
    saver.save(str(tmp_path / "policy"))
    loaded = py_tf_eager_policy.SavedModelPyTFEagerPolicy(
        str(tmp_path / "policy"), load_specs_from_pbtxt=True
    )
    policy.update(make_q_policy(seed=1))
    counter.assign(12)
    saver.save_checkpoint(str(tmp_path / "checkpoint_12"))
    loaded.update_from_checkpoint(str(tmp_path / "checkpoint_12"))
    assert loaded.get_train_step() == 12
    assert loaded.get_train_step_from_last_restored_checkpoint_path() == 12
    for saved, live in zip(loaded.variables(), policy.variables(), strict=True):
        np.testing.assert_array_equal(saved, live)


@pytest.mark.slow
def test_a_checkpoint_is_read_into_a_loaded_model_under_the_name_policy(tmp_path):
    policy = make_q_policy(seed=0)
    saver = policy_saver.PolicySaver(policy)
    saver.save(str(tmp_path / "policy"))
    loaded = tf.saved_model.load(str(tmp_path / "policy"))
    policy.update(make_q_policy(seed=1))
    saver.save_checkpoint(str(tmp_path / "later"))
    tf.train.Checkpoint(policy=loaded).read(
        str(tmp_path / "later" / "variables" / "variables")
    ).assert_existing_objects_matched()
    for read, live in zip(loaded.model_variables, policy.variables(), strict=True):
        np.testing.assert_array_equal(read, live)


def test_a_policy_of_another_kind_is_a_type_error():
    with pytest.raises(TypeError, match="policy is not a TFPolicy"):
        policy_saver.PolicySaver(object())


@pytest.mark.parametrize("metadata", [{1: tf.Variable(1)}, {"steps": 1}])
def test_metadata_must_be_variables_by_name(metadata):
    with pytest.raises(TypeError, match=r"metadata: got .* tf\.Variables by name"):
        policy_saver.PolicySaver(make_q_policy(), metadata=metadata)


@pytest.mark.parametrize("batch_size", [0, 2.5])
def test_a_batch_size_must_be_a_positive_integer(batch_size):
    with pytest.raises((TypeError, ValueError), match=f"batch_size: .* {batch_size}"):
        policy_saver.PolicySaver(make_q_policy(), batch_size=batch_size)


def test_a_train_step_must_be_a_variable():
    with pytest.raises(ValueError, match=r"train_step: got 3"):
        policy_saver.PolicySaver(make_q_policy(), train_step=3)


def test_a_time_step_of_another_origin_is_accepted(saved):
    loaded = tf.saved_model.load(saved("q"))
    foreign = collections.namedtuple("TimeStep", ts.TimeStep._fields)
    assert loaded.action(foreign(*step())).action.shape == [5]


def test_saving_again_does_not_trace_again(tmp_path):
    net = Echo(OBSERVATION)
    saver = policy_saver.PolicySaver(q_policy.QPolicy(TIME_STEP, ACTION, net))
    saver.save(str(tmp_path / "1"))
    num_calls = net.num_calls
    saver.save(str(tmp_path / "2"))
    assert net.num_calls == num_calls


def test_saving_converts_no_python_by_autograph(tmp_path):
    statuses = []

    class Policy(Counting):
        def _action(self, time_step, policy_state, seed):
            context = tf.__internal__.autograph.control_status_ctx()
            statuses.append(context.status.name)
            return super()._action(time_step, policy_state, seed)

    save(Policy(), tmp_path)
    assert set(statuses) == {"DISABLED"}


def test_a_directory_that_tensorflow_takes_for_a_pattern_is_refused(tmp_path):
    saver = policy_saver.PolicySaver(make_q_policy())
    for save in (saver.save, saver.save_checkpoint):
        with pytest.raises(ValueError, match=r"export_dir '.*run\[1\]': has '\['"):
            save(tmp_path / "run[1]")
    assert not list(tmp_path.iterdir())
