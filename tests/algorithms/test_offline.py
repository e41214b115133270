"""An agent that has learned from recordings learns on in its environment."""

import functools

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

import tfrl

STEPS = 40
RANDOM = np.random.default_rng(0)
ARRAYS = {
    "observations": RANDOM.normal(size=(STEPS, 3)),
    "actions": RANDOM.uniform(-2, 2, size=(STEPS, 1)),
    "rewards": np.full(STEPS, 7.0),
    "terminals": np.arange(1, STEPS + 1) % 20 == 0,
}


def test_each_minibatch_has_the_share_of_new_frames():
    algorithm = tfrl.IQL(
        "Pendulum-v1",
        data=ARRAYS,
        online_share=0.25,
        initial_collect_steps=8,
        train_steps_per_iteration=2,
        jit_compile=False,
    )
    assert algorithm.least_iterations(14) == 6
    buffer = algorithm.replay_buffer
    assert buffer.num_frames() == 0
    frame = tf.nest.map_structure(
        lambda spec: tf.zeros([1, *spec.shape], spec.dtype), buffer.data_spec
    )
    for _ in range(3):
        buffer.add_batch(frame)
    # Frames with the reward 7 are recorded. The loop divides what is drawn in two.
    drawn, _ = buffer.sample(16, 2, seed=0)
    recorded = np.any(drawn.reward == 7.0, axis=1)
    assert [*np.reshape(recorded, [2, 8]).sum(axis=1)] == [6, 6]


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("own", [False, True])
def test_the_normalizer_counts_recorded_frames_once(own, share):
    def buffer(spec, batch_size):
        made = tfrl.replay_buffers.TFUniformReplayBuffer(
            spec, batch_size, max_length=42
        )
        tfrl.datasets.fill(made, tfrl.datasets.load_arrays(ARRAYS, spec))
        return made

    given = {"replay_buffer": buffer} if own else {"data": ARRAYS}
    algorithm = tfrl.TD3BC(
        "Pendulum-v1",
        online_share=share,
        normalize_observations=True,
        jit_compile=False,
        **given,
    )
    algorithm.build()
    count, *_ = algorithm.agent.observation_normalizer.variables
    assert int(count) == STEPS + 2


def test_the_rate_of_iqls_actor_falls_over_the_updates_of_the_run():
    algorithm = tfrl.IQL(
        "Pendulum-v1",
        data=ARRAYS,
        num_iterations=2,
        train_steps_per_iteration=2,
        final_actor_learning_rate=0.0,
        jit_compile=False,
    )
    agent = algorithm.agent
    frames = tfrl.datasets.load_arrays(ARRAYS, agent.collect_data_spec)
    experience = next(iter(frames.batch(2).batch(8)))
    changes = []
    for _ in range(5):
        before = weights(algorithm)
        agent.train(experience)
        changes.append(np.abs(before[0] - weights(algorithm)[0]).max())
    # Adam's first step is as long as its rate.
    assert changes[0] == pytest.approx(algorithm.learning_rate, rel=0.01)
    assert changes[3] > 0
    assert changes[4] == 0


CHOICES = {
    "observations": RANDOM.normal(size=(STEPS, 2)),
    "actions": RANDOM.integers(3, size=STEPS),
    "rewards": np.full(STEPS, -1.0),
    "terminals": np.arange(1, STEPS + 1) % 20 == 0,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "environment", "arrays"),
    [
        *((x, "Pendulum-v1", ARRAYS) for x in (tfrl.IQL, tfrl.TD3BC, tfrl.CQL)),
        *((x, "Pendulum-v1", ARRAYS) for x in (tfrl.ReBRAC, tfrl.EDAC)),
        *((x, "MountainCar-v0", CHOICES) for x in (tfrl.IQL, tfrl.CQL)),
    ],
)
def test_learns_on_from_recorded_and_new_frames_and_resumes_bit_for_bit(
    kind, environment, arrays, tmp_path
):
    make = functools.partial(kind, environment, seed=0, data=arrays, jit_compile=False)
    offline = make().learn(3, progress=False)
    offline.save(tmp_path / "offline")
    online = functools.partial(
        make,
        initial_run=tmp_path / "offline",
        online_share=0.25,
        initial_collect_steps=8,
        train_steps_per_iteration=2,
        batch_size=8,
    )
    whole = online()
    for before, after in zip(weights(offline), weights(whole), strict=True):
        np.testing.assert_array_equal(before, after)
    whole.learn(14, progress=False)
    # The policy itself takes the first steps, and each later one is an iteration.
    info = whole.loop.info()
    assert (info.environment_steps, info.train_steps) == (14, 2 * 6)
    half = online().learn(10, total=14, progress=False)
    half.save(tmp_path / "half")
    resumed = tfrl.load(tmp_path / "half", data=arrays).learn(4, progress=False)
    for find in (weights, buffered):
        for ours, theirs in zip(find(whole), find(resumed), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_cql_of_a_discrete_action_is_on_double_dqn():
    made = tfrl.CQL("MountainCar-v0", data=CHOICES, cql_alpha=0.3, jit_compile=False)
    assert type(made.agent) is tfrl.agents.CqlDqnAgent
    assert made.agent._cql_alpha == 0.3
    made.learn(2, progress=False)
    action, _ = made.predict(np.zeros(2, np.float32))
    assert action in (0, 1, 2)


def test_the_penalty_of_a_discrete_action_has_no_samples():
    with pytest.raises(
        ValueError, match=r"num_cql_samples: got 8, expected the default, 4, since"
    ):
        tfrl.CQL("MountainCar-v0", data=CHOICES, num_cql_samples=8).build()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [tfrl.IQL, tfrl.CQL])
def test_is_better_than_the_recorded_policy_of_cart_pole(kind):
    """The recorded one pushes to where the pole falls, and at random in 7 of 10 steps.

    Its episodes return about 50.
    """
    environment, random = gymnasium.make("CartPole-v1"), np.random.default_rng(0)
    rows = {name: [] for name in CHOICES}
    for episode in range(150):
        observation, _ = environment.reset(seed=episode)
        is_over = False
        while not is_over:
            falls = observation[2] + observation[3] > 0
            action = random.integers(2) if random.random() < 0.7 else int(falls)
            step = observation, action
            observation, reward, is_over, _, _ = environment.step(action)
            for name, value in zip(rows, (*step, reward, is_over), strict=True):
                rows[name].append(value)
    arrays = {name: np.array(values) for name, values in rows.items()}
    recorded = arrays["rewards"].sum() / 150
    learned = kind("CartPole-v1", seed=0, data=arrays).learn(4_000, progress=False)
    found = learned.evaluate(20).mean
    print(f"{kind.__name__}: {recorded:.1f} recorded, {found:.1f} learned")
    assert found > 3 * recorded


def weights(algorithm):
    """The policy's weights."""
    return [variable.numpy() for variable in algorithm.policy.variables()]


def buffered(algorithm):
    """All that checkpoints hold of the replay buffer, with states of generators."""
    parts = tf.train.TrackableView(algorithm.replay_buffer).descendants()
    found = [part.numpy() for part in parts if isinstance(part, tf.Variable)]
    assert len(found) > 3
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", [tfrl.IQL, tfrl.CQL, tfrl.TD3BC, tfrl.ReBRAC])
def test_new_frames_improve_what_was_learned_from_poor_recordings(kind):
    sac = tfrl.SAC("Pendulum-v1", seed=0).learn(3_000, progress=False)
    frames = tf.nest.map_structure(lambda x: x[0], sac.replay_buffer.gather_all())
    steps = frames.step_type.numpy() != 2
    arrays = {
        "observations": frames.observation.numpy()[steps],
        "actions": frames.action.numpy()[steps],
        "rewards": frames.reward.numpy()[steps],
        "terminals": np.zeros(steps.sum(), bool),
        "timeouts": frames.next_step_type.numpy()[steps] == 2,
    }
    make = functools.partial(kind, "Pendulum-v1", seed=0, data=arrays)
    offline = make().learn(5_000, progress=False)
    before = offline.evaluate(20).mean
    agent = offline.agent
    online = make(online_share=0.5, agent=lambda *_, **__: agent)
    online.learn(3_000, progress=False)
    after = online.evaluate(20).mean
    print(f"{kind.__name__}: {before:.1f} offline, {after:.1f} online")
    # 200 more, but not more than the best policies reach, which return about -150.
    assert after > max(min(before + 200, -200), -350)
