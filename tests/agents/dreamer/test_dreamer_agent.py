"""DreamerV3's agent: sequences, imagination and losses, against NumPy's loops."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import special

import tfrl
from tfrl import agents
from tfrl.agents import tf_agent
from tfrl.agents.dreamer import choices, dreamer_networks, rssm
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

OBSERVATION = tf.TensorSpec([3], tf.float32)
CHOICE = BoundedTensorSpec([], tf.int32, 0, 2)
FORCE = BoundedTensorSpec([2], tf.float32, -2, 2)
ONE_FORCE = BoundedTensorSpec([1], tf.float32, -2, 2)
SIZES = rssm.Sizes(deter=8, units=6, hidden=5, classes=3, depth=2, stoch=2, blocks=2)
RNG = np.random.default_rng(5)
GAMMA, LAMBDA = 1 - 1 / 20, 0.9
# Rows: in mid-episode; an end and a new episode; a cut.
STEP_TYPES = np.array([[1, 1, 1, 1, 1], [0, 1, 2, 0, 1], [1, 1, 0, 1, 1]])
NEXT_STEP_TYPES = np.array([[1, 1, 1, 1, 1], [1, 2, 0, 1, 1], [1, 1, 1, 1, 1]])
DISCOUNTS = np.array([[1, 1, 1, 1, 1], [1, 0, 1, 1, 1], [1, 1, 1, 1, 1.0]])
PAID = RNG.normal(size=[3, 5])
OBSERVED = RNG.normal(size=[3, 5, 3])
CHOSEN = RNG.integers(0, 3, size=[3, 5])
STATES = {
    "deter": RNG.normal(size=[3, 5, 8]),
    "stoch": np.eye(3)[RNG.integers(0, 3, size=[3, 5, 2])],
    "action": np.eye(3)[RNG.integers(0, 3, size=[3, 5])],
}


def make(spec=CHOICE, **kwargs):
    agent = agents.DreamerAgent(
        ts.time_step_spec(OBSERVATION),
        spec,
        keras.optimizers.SGD(0.01),
        sizes=SIZES,
        imagination_length=4,
        gamma=GAMMA,
        lambda_value=LAMBDA,
        seed=3,
        **kwargs,
    )
    agent.initialize()
    return agent


@pytest.fixture(scope="module")
def agent():
    return make()


def frames():
    floats = {name: tf.constant(x, tf.float32) for name, x in STATES.items()}
    return trajectory.Trajectory(
        step_type=tf.constant(STEP_TYPES, tf.int32),
        observation=tf.constant(OBSERVED, tf.float32),
        action=tf.constant(CHOSEN, tf.int32),
        policy_info={"policy_state": floats},
        next_step_type=tf.constant(NEXT_STEP_TYPES, tf.int32),
        reward=tf.constant(PAID, tf.float32),
        discount=tf.constant(DISCOUNTS, tf.float32),
    )


def test_rewards_and_ends_move_to_the_observations_that_they_led_to(agent):
    data = agent._prepare(frames())
    expected = np.zeros([3, 5])
    known = np.zeros([3, 5], bool)
    for b in range(3):
        for t in range(5):
            first = STEP_TYPES[b, t] == 0
            follows = t > 0 and NEXT_STEP_TYPES[b, t - 1] == STEP_TYPES[b, t]
            known[b, t] = first or follows
            if follows and not first:
                expected[b, t] = PAID[b, t - 1]
    np.testing.assert_allclose(data.reward, expected, rtol=1e-6)
    np.testing.assert_array_equal(data.knows_reward, known)
    # The termination is known at the last observation of its episode.
    assert np.argwhere(data.ends.numpy()).tolist() == [[1, 2]]
    assert np.argwhere(data.is_last.numpy()).tolist() == [[1, 2]]
    assert np.argwhere(data.is_cut.numpy()).tolist() == [[2, 2]]
    np.testing.assert_array_equal(data.before[:, 0], STATES["action"][:, 0])
    np.testing.assert_array_equal(data.before[:, 1:], np.eye(3)[CHOSEN[:, :-1]])
    np.testing.assert_allclose(data.start.deter, STATES["deter"][:, 0], rtol=1e-6)


def test_states_follow_from_the_recorded_one_and_begin_anew(agent):
    data = agent._prepare(frames())
    deters, logits, stochs = agent._follow(data, tf.constant([1, 2], tf.int64))
    model = agent._model.rssm
    tokens = agent._model.embed(tf.reshape(data.observation, [15, 3]))
    tokens = tf.reshape(tokens, [3, 5, -1])
    state = data.start
    for t in range(5):
        begins = (data.is_first | data.is_cut)[:, t].numpy()[:, np.newaxis]
        deter = np.where(begins, 0.0, state.deter)
        stoch = np.where(begins[..., np.newaxis], 0.0, state.stoch)
        before = np.where(begins, 0.0, data.before[:, t])
        state = rssm.State(*(tf.constant(x, tf.float32) for x in (deter, stoch)))
        deter = model.advance(state, tf.constant(before, tf.float32))
        np.testing.assert_allclose(deters[:, t], deter, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            logits[:, t], model.posterior(deter, tokens[:, t]), rtol=1e-4, atol=1e-5
        )
        assert set(np.round(np.unique(stochs[:, t]), 5)) == {0.0, 1.0}
        state = rssm.State(deter, stochs[:, t])


def test_refreshed_states_are_those_that_an_update_found_one_step_before(agent):
    experience = frames()
    states = rssm.State(
        tf.constant(RNG.normal(size=[3, 5, 8]), tf.float32),
        tf.constant(RNG.normal(size=[3, 5, 2, 3]), tf.float32),
    )
    info = agents.dreamer.DreamerInfo(*[0.0] * 8, states)
    found = agent.refreshed(experience, tf_agent.LossInfo(0.0, info))
    expected = {name: np.copy(x) for name, x in STATES.items()}
    for b in range(3):
        for t in range(1, 5):
            follows = NEXT_STEP_TYPES[b, t - 1] == STEP_TYPES[b, t]
            if follows and STEP_TYPES[b, t] != 0:
                expected["deter"][b, t] = states.deter[b, t - 1]
                expected["stoch"][b, t] = states.stoch[b, t - 1]
                expected["action"][b, t] = np.eye(3)[CHOSEN[b, t - 1]]
    recorded = found.policy_info["policy_state"]
    assert recorded.keys() == expected.keys()
    for name, x in expected.items():
        np.testing.assert_allclose(recorded[name], x, rtol=1e-6)
    for name in set(experience._fields) - {"policy_info"}:
        assert getattr(found, name) is getattr(experience, name)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_a_loop_writes_the_states_that_its_update_found(compiled):
    """Each follows from the one before, from the first frame of the only window on."""
    made = tfrl.Dreamer(
        "CartPole-v1",
        seed=0,
        initial_collect_steps=5,
        replay_capacity=8,
        collect_steps_per_iteration=1,
        batch_size=1,
        sequence_length=5,
        imagination_length=2,
        jit_compile=compiled,
        learning_rate=0.0,
    )
    made.build().run(1)
    held = made.replay_buffer.gather_all()
    assert not held.is_boundary().numpy().any()
    recorded = tf.nest.map_structure(lambda x: x[0], held.policy_info["policy_state"])
    before = rssm.State(recorded["deter"], recorded["stoch"])
    after = made.agent._model.rssm.advance(before, recorded["action"])
    # The window begins at frame 0 or 1, and the policy did not record these steps.
    np.testing.assert_allclose(recorded["deter"][2:5], after[1:4], rtol=1e-4, atol=1e-5)
    assert (np.abs(recorded["deter"][3:5]).max(axis=-1) > 0).all()
    np.testing.assert_array_equal(
        recorded["action"][2:5], np.eye(2)[held.action[0, 1:4]]
    )


def test_imagined_returns_and_weights(agent):
    number = 6
    states = rssm.State(
        tf.constant(RNG.normal(size=[number, 8]), tf.float32),
        tf.constant(np.eye(3)[RNG.integers(0, 3, size=[number, 2])], tf.float32),
    )
    # Weights that matter: rewards and values are 0 at first.
    for layer in (agent._model.reward_head[-1], agent._critic.last):
        layer.kernel.assign(RNG.normal(size=layer.kernel.shape))
    found = agent._imagine(states, tf.constant([7, 8], tf.int64))
    assert found.features.shape == (4, number, 8 + 6)
    np.testing.assert_allclose(found.features[0], states.features(), rtol=1e-6)
    assert set(np.unique(found.actions)) == {0.0, 1.0}
    # The last state is not among the features: follow the last action.
    deter = agent._model.rssm.advance
    bins = dreamer_networks.BINS
    for t in range(3):
        features = found.features[t]
        stoch = tf.reshape(features[:, 8:], [number, 2, 3])
        following = deter(rssm.State(features[:, :8], stoch), found.actions[t])
        np.testing.assert_allclose(
            found.features[t + 1][:, :8], following, rtol=1e-4, atol=1e-5
        )
    flat = tf.reshape(found.features, [-1, 14])
    going = special.expit(agent._model.continue_logits(flat)).reshape(4, number)
    values = bins.value(agent._critic(flat)).numpy().reshape(4, number)
    rewards = bins.value(agent._model.reward_logits(flat)).numpy().reshape(4, number)
    np.testing.assert_allclose(found.weights, np.cumprod(going, axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.values, values, rtol=1e-5)
    for t in range(2):  # The recursion, from each return to the next.
        following = (1 - LAMBDA) * values[t + 1] + LAMBDA * found.returns[t + 1]
        expected = rewards[t + 1] + going[t + 1] * following
        np.testing.assert_allclose(found.returns[t], expected, rtol=1e-4, atol=1e-4)


def test_the_critics_returns_on_replay_stop_at_ends_and_cuts(agent):
    data = agent._prepare(frames())
    bootstrap = RNG.normal(size=[3, 5])
    seen = {}

    def record(features, returns):
        seen["returns"] = returns.numpy().reshape(3, 5)
        return tf.range(1.0, 16.0)

    original, agent._critic_losses = agent._critic_losses, record
    try:
        loss = agent._of_replay(
            data, tf.zeros([15, 14]), tf.constant(bootstrap.ravel(), tf.float32)
        )
    finally:
        agent._critic_losses = original
    reward, ends = data.reward.numpy(), data.ends.numpy()
    stops = np.zeros([3, 5], bool)
    stops[1, 2] = stops[2, 1] = True  # A boundary, and the frame before a cut.
    counted = ~stops
    counted[:, -1] = False
    for b in range(3):
        following = bootstrap[b, -1]
        for t in range(3, -1, -1):
            ahead = bootstrap[b, t + 1] if t + 1 == 4 or stops[b, t + 1] else None
            if ahead is None:
                ahead = (1 - LAMBDA) * bootstrap[b, t + 1] + LAMBDA * following
            following = reward[b, t + 1] + GAMMA * (1 - ends[b, t + 1]) * ahead
            if counted[b, t]:
                np.testing.assert_allclose(
                    seen["returns"][b, t], following, rtol=1e-5, atol=1e-6
                )
    expected = np.arange(1.0, 16.0).reshape(3, 5) * counted
    np.testing.assert_allclose(loss, expected.ravel(), rtol=1e-6)


def test_the_scale_of_returns_is_a_running_range_of_at_least_1():
    agent, expected = make(), 0.0
    for i in range(3):
        returns = tf.constant(400 * i * RNG.normal(size=[5, 9]), tf.float32)
        now = np.percentile(returns, 95) - np.percentile(returns, 5)
        expected += 0.01 * (now - expected)
        before = agent._range.numpy()
        scale = agent._scale_of_returns(returns, training=False)
        assert agent._range == before
        np.testing.assert_allclose(
            agent._scale_of_returns(returns, training=True), scale, rtol=1e-6
        )
        np.testing.assert_allclose(scale, max(1.0, expected), rtol=1e-4)
    assert expected > 2


def gradients(agent, names):
    """The largest gradient of a sum of details in each of the networks."""
    batch = agent._batch(frames(), None, True)
    with tf.GradientTape() as tape:
        _, details = agent._whole(batch._replace(seed=tf.constant([1, 2], tf.int64)))
        total = tf.add_n([getattr(details["extra"], name) for name in names])
    networks = agent._model, agent._actor_head, agent._critic
    found = []
    flat = [v for n in networks for v in n.trainable_variables]
    slopes = iter(tape.gradient(total, flat))
    for network in networks:
        own = [next(slopes) for _ in network.trainable_variables]
        found.append(
            max((float(tf.reduce_max(abs(g))) for g in own if g is not None), default=0)
        )
    return found


def test_each_loss_trains_its_own_networks():
    agent = make()
    for layer in (agent._critic.last, agent._model.reward_head[-1]):
        layer.kernel.assign(0.1 * RNG.normal(size=layer.kernel.shape))
    of_model = ["reconstruction_loss", "reward_loss", "continue_loss"]
    of_model += ["dynamics_loss", "representation_loss"]
    model, actor, critic = gradients(agent, of_model)
    assert model > 0
    assert actor == critic == 0
    assert gradients(agent, ["actor_loss"])[::2] == [0, 0]
    assert gradients(agent, ["actor_loss"])[1] > 0
    model, actor, critic = gradients(agent, ["critic_loss"])
    assert critic > 0
    assert model == actor == 0
    model, actor, critic = gradients(agent, ["replay_critic_loss"])
    assert min(model, critic) > 0
    assert actor == 0


def test_the_reconstructions_weight_multiplies_its_loss_alone():
    usual, heavy = (
        make(reconstruction_weight=weight).loss(frames()) for weight in (1.0, 20.0)
    )
    found, expected = (
        {name: float(x) for name, x in info.extra._asdict().items() if name != "states"}
        for info in (heavy, usual)
    )
    expected["reconstruction_loss"] *= 20
    assert found == pytest.approx(expected, rel=1e-5)
    assert float(heavy.loss) == pytest.approx(sum(expected.values()), rel=1e-5)


@pytest.mark.parametrize("spec", [CHOICE, FORCE])
def test_distributions_of_actions_are_those_of_tfp(spec):
    import tensorflow_probability as tfp

    reading = choices.of(spec)
    outputs = tf.constant(RNG.normal(size=[7, reading.num_outputs]), tf.float32)
    drawn = reading.sample(outputs, tf.constant([3, 4], tf.int64))
    if spec is CHOICE:
        mixed = 0.99 * tf.nn.softmax(outputs) + 0.01 / 3
        theirs = tfp.distributions.OneHotCategorical(probs=mixed)
    else:
        mean, raw = tf.split(outputs, 2, axis=-1)
        stddev = 0.9 * tf.sigmoid(raw + 2) + 0.1
        theirs = tfp.distributions.MultivariateNormalDiag(tf.tanh(mean), stddev)
    np.testing.assert_allclose(
        reading.log_prob(outputs, drawn), theirs.log_prob(drawn), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(reading.entropy(outputs), theirs.entropy(), rtol=1e-4)
    np.testing.assert_allclose(reading.mode(outputs), theirs.mode(), rtol=1e-5)


@pytest.mark.parametrize("spec", [CHOICE, FORCE])
def test_policies_act_in_their_bounds_and_record_their_state(spec):
    agent = make(spec)
    policy = agent.collect_policy
    step = ts.restart(tf.constant(OBSERVED[:, 0], tf.float32), batch_size=3)
    state = policy.get_initial_state(3)
    first = policy.action(step, state, seed=1)
    assert set(first.info["policy_state"]) == {"deter", "stoch", "action"}
    np.testing.assert_array_equal(first.info["policy_state"]["deter"], 0.0)
    again = policy.action(step, first.state, seed=1)
    # A first step resets the state.
    tf.nest.map_structure(np.testing.assert_array_equal, first.state, again.state)
    later = step._replace(step_type=tf.fill([3], ts.StepType.MID))
    second = policy.action(later, first.state, seed=2)
    np.testing.assert_array_equal(
        second.info["policy_state"]["action"], first.state["action"]
    )
    assert (second.state["deter"].numpy() != first.state["deter"].numpy()).any()
    greedy = agent.policy.action(step, agent.policy.get_initial_state(3))
    once_more = agent.policy.action(step, agent.policy.get_initial_state(3))
    np.testing.assert_array_equal(greedy.action, once_more.action)
    assert greedy.action.dtype == spec.dtype


@pytest.mark.parametrize(
    ("shape", "whole"),
    [
        ([32, 48, 3], (32, 48, 3)),
        ([84, 84, 4], (96, 96, 4)),
        ([3, 40, 40], (48, 48, 3)),
        ([33, 20], (48, 32, 1)),
    ],
)
def test_images_are_halved_four_times_and_made_again(shape, whole):
    spec = BoundedTensorSpec(shape, tf.uint8, 0, 255)
    model = dreamer_networks.WorldModel(spec, 2, SIZES, seed=1)
    images = RNG.integers(0, 256, size=[2, *shape], dtype=np.uint8)
    assert model.embed(tf.constant(images)).shape == (
        2,
        whole[0] // 16 * (whole[1] // 16) * 4 * SIZES.depth,
    )
    features = tf.constant(RNG.normal(size=[2, 14]), tf.float32)
    (predicted,) = model.predictions(features)
    assert predicted.shape == (2, *whole)
    assert 0 < predicted.numpy().min() < predicted.numpy().max() < 1
    seen = images.transpose([0, 2, 3, 1]) if shape[0] == 3 else images
    seen = seen.reshape(2, *seen.shape[1:3], whole[2])
    target = np.zeros([2, *whole])
    target[:, : seen.shape[1], : seen.shape[2]] = seen / 255
    expected = np.sum((predicted - target) ** 2, axis=(1, 2, 3))
    found = model.reconstruction_loss(features, tf.constant(images))
    in_graph = tf.function(model.reconstruction_loss)(features, tf.constant(images))
    np.testing.assert_allclose(in_graph, found, rtol=1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_convolution_of_a_doubled_image_is_keras_own(jit_compile):
    images = tf.constant(RNG.normal(size=[2, 5, 4, 3]), tf.float32)
    ours = dreamer_networks.DoublingConv2D(6, 5, padding="same", activation="silu")
    convolution = keras.layers.Conv2D(6, 5, padding="same", activation="silu")
    theirs = keras.Sequential([keras.layers.UpSampling2D(2), convolution])
    found, expected = ours(images), theirs(images)
    assert found.shape == expected.shape == (2, 10, 8, 6)
    convolution.set_weights([x + 0.1 for x in ours.get_weights()])
    ours.set_weights(convolution.get_weights())
    results = []
    for layer in (ours, theirs):

        @tf.function(jit_compile=jit_compile, autograph=False)
        def differentiate(layer=layer):
            with tf.GradientTape() as tape:
                tape.watch(images)
                outputs = layer(images)
                loss = tf.reduce_sum(outputs**3)
            return outputs, *tape.gradient(loss, [images, *layer.trainable_variables])

        results.append(differentiate())
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_later_observations_do_not_change_what_is_predicted_from_the_first(agent):
    data = frames()._replace(
        step_type=tf.ones([3, 5], tf.int32), next_step_type=tf.ones([3, 5], tf.int32)
    )
    changed = data._replace(
        observation=tf.concat(
            [data.observation[:, :3], data.observation[:, 3:] + 9.0], axis=1
        )
    )
    ((observed, one),) = agent.open_loop(data, 3)
    ((_, other),) = agent.open_loop(changed, 3)
    np.testing.assert_array_equal(observed, data.observation)
    assert one.shape == (3, 5, 3)
    np.testing.assert_allclose(one, other, rtol=1e-6)
    ((_, seen),) = agent.open_loop(changed, 5)
    assert np.abs(seen - one)[:, 3:].max() > 1e-4
    np.testing.assert_allclose(seen[:, :3], one[:, :3], rtol=1e-5)


@pytest.mark.parametrize(
    "spec",
    [pytest.param(CHOICE, marks=pytest.mark.slow), ONE_FORCE],
    ids=["choice", "force"],
)
def test_a_graph_for_batches_of_any_size_has_the_loss_of_this_size(spec):
    agent = make(spec)
    given = frames()
    if spec is ONE_FORCE:
        info = given.policy_info["policy_state"]
        forces = tf.constant(np.random.default_rng(1).uniform(-2, 2, [3, 5, 1]))
        forces = tf.cast(forces, tf.float32)
        given = given._replace(
            action=forces, policy_info={"policy_state": {**info, "action": forces / 2}}
        )
    any_size = tf.nest.map_structure(
        lambda x: tf.TensorSpec([None, None, *x.shape[2:]], x.dtype), given
    )
    traced = tf.function(agent.loss, input_signature=[any_size], autograph=False)
    found, expected = traced(given), agent.loss(given)
    for one, other in zip(
        tf.nest.flatten(found), tf.nest.flatten(expected), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
