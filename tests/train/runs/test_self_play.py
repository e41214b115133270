import numpy as np
import pytest

import tfrl
from tests.environments.native.nim import nim
from tfrl import train
from tfrl.environments import native
from tfrl.environments.native import self_play


class Rows(train.Callback):
    def __init__(self):
        self.ratings = []

    def on_log(self, row):
        self.ratings.append(row["elo"])


def make(kind=tfrl.A2C, **settings):
    usual = {
        "num_envs": 32,
        "collect_steps_per_iteration": 4,
        "fc_layer_params": (16,),
        "num_iterations": 60,
        "log_interval": 10,
        "eval_interval": 60,
        "checkpoint_interval": 20,
        "seed": 0,
    }
    return kind(self_play.of_game(nim()), **{**usual, **settings})


def weights_of(policy):
    return np.concatenate([x.numpy().ravel() for x in policy.variables()])


@pytest.mark.slow
def test_the_rating_rises_and_the_policy_learns_to_win():
    # Who leaves three stones wins; five stones are won by whoever begins.
    a2c, rows = make(learning_rate=1e-2, final_learning_rate=None), Rows()
    a2c.learn(callbacks=[rows], progress=False)
    assert rows.ratings[0] == 0
    assert rows.ratings[-1] > 100
    for stones, taken in ((5, 2), (4, 1), (2, 2), (1, 1)):
        seen = {"stones": np.int32(stones), "action_mask": np.array([True, stones > 1])}
        action, _ = a2c.predict(seen)
        assert action + 1 == taken
    opponents = a2c.opponents
    assert a2c.environment.dynamics.opponents is opponents
    newest, *others = map(weights_of, opponents.policies)
    np.testing.assert_array_equal(newest, weights_of(a2c.agent.collect_policy))
    kept = {x.tobytes() for x in others}
    assert len(kept) > 2  # Of several ages.
    assert opponents.ratings.numpy()[-1] == 0
    assert opponents.ratings.numpy()[0] == pytest.approx(rows.ratings[-1], rel=1e-3)


@pytest.mark.slow
def test_a_resumed_run_has_the_same_opponents_and_ratings(tmp_path):
    settings = {"num_iterations": 40, "checkpoint_interval": 20}
    whole = make(logdir=tmp_path / "whole", **settings)
    whole.run(films=False, reports=False).run()

    class Stop(train.Callback):
        def on_checkpoint(self, path):
            if path.endswith("-20"):
                self.stop("to resume")

    parts = make(logdir=tmp_path / "parts", **settings)
    parts.run(callbacks=[Stop()], films=False, reports=False).run()
    resumed = make(logdir=tmp_path / "parts", **settings)
    resumed.run(films=False, reports=False, continue_stopped=True).run()
    for one, other in zip(
        whole.opponents.policies, resumed.opponents.policies, strict=True
    ):
        np.testing.assert_array_equal(weights_of(one), weights_of(other))
    np.testing.assert_array_equal(
        whole.opponents.ratings.numpy(), resumed.opponents.ratings.numpy()
    )
    assert weights_of(whole.agent.policy).any()
    np.testing.assert_array_equal(
        weights_of(whole.agent.policy), weights_of(resumed.agent.policy)
    )


def test_a_policy_with_a_memory_is_refused():
    with pytest.raises(ValueError, match=r"policies with a state.*lstm_size=0"):
        make(tfrl.PPO, lstm_size=8).build()


def test_an_environment_without_opponents_is_refused():
    a2c = make()
    a2c.build()
    lonely = native.NativeEnvironment(self_play.of_game(nim()), 2)
    policy = a2c.agent.collect_policy
    with pytest.raises(ValueError, match="environment: got one without opponents"):
        train.SelfPlay(lonely, policy, 10)
    with pytest.raises(ValueError, match=r"num_games: .*at least 16, got 7"):
        train.SelfPlay(a2c.environment, policy, 10, num_games=7)
    with pytest.raises(ValueError, match=r"interval: .*got 0"):
        train.SelfPlay(a2c.environment, policy, 0)
