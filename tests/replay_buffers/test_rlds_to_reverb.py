"""Episodes of RLDS become frames with boundaries, in a replay service."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import replay_service
from tfrl.replay_buffers import reverb_utils, rlds_to_reverb
from tfrl.specs import tensor_spec


def steps(number, terminal=True, **changes):
    last = np.arange(number) == number - 1
    return {
        "observation": np.arange(2.0 * number, dtype=np.float32).reshape(number, 2),
        "action": np.arange(number, dtype=np.int64),
        "reward": np.float32(10 + np.arange(number)),
        "discount": np.ones(number, np.float32),
        "is_first": np.arange(number) == 0,
        "is_last": last,
        "is_terminal": last & terminal,
        **changes,
    }


def episodes(*each):
    made = [tf.data.Dataset.from_tensor_slices(one) for one in each]
    return tf.data.Dataset.from_tensor_slices({"steps": made})


def test_each_step_is_a_frame_and_a_termination_has_the_discount_0():
    data = episodes(steps(3), steps(1, terminal=False), steps(2, terminal=False))
    frames = [*rlds_to_reverb.convert_rlds_to_trajectories(data).as_numpy_iterator()]
    kinds = [(int(f.step_type), int(f.next_step_type)) for f in frames]
    assert kinds == [(0, 1), (1, 2), (2, 0), (2, 2), (0, 2), (2, 0)]
    assert [f.discount for f in frames] == [1, 0, 0, 1, 1, 1]
    assert [f.reward for f in frames] == [10, 11, 12, 10, 10, 11]
    np.testing.assert_array_equal(frames[1].observation, [2.0, 3.0])
    assert [f.action for f in frames] == [0, 1, 2, 0, 0, 1]


def test_policy_info_is_made_of_both_steps():
    def info(now, after):
        return {"next": after["observation"][0] - now["observation"][0]}

    data = episodes(steps(3))
    frames = rlds_to_reverb.convert_rlds_to_trajectories(data, info)
    first, second, _ = frames.as_numpy_iterator()
    assert first.policy_info["next"] == second.policy_info["next"] == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"is_terminal": np.array([False, True, False])}, "Terminal step must be the"),
        ({"is_last": np.array([False, True, True])}, "must be followed by a first"),
        ({"is_last": np.zeros(3, bool), "is_terminal": np.zeros(3, bool)}, "Mid step"),
    ],
)
def test_wrong_episodes_are_errors(changes, message):
    frames = rlds_to_reverb.convert_rlds_to_trajectories(
        episodes(steps(3, **changes), steps(2))
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(frames)


def test_data_without_steps_or_keys_are_refused():
    with pytest.raises(ValueError, match="No dataset representing RLDS steps"):
        rlds_to_reverb.create_trajectory_data_spec(tf.data.Dataset.range(2))
    short = steps(2)
    del short["is_last"]
    with pytest.raises(ValueError, match=r"add \['is_last'\]"):
        rlds_to_reverb.create_trajectory_data_spec(episodes(short))


def test_frames_arrive_in_a_service():
    data = episodes(steps(3), steps(2))
    spec = rlds_to_reverb.create_trajectory_data_spec(data)

    def table(name, signature):
        return replay_service.Table(
            name=name,
            sampler=replay_service.selectors.Uniform(),
            remover=replay_service.selectors.Fifo(),
            max_size=100,
            rate_limiter=replay_service.rate_limiters.MinSize(1),
            signature=tensor_spec.add_outer_dim(signature),
        )

    server = replay_service.Server(
        [table("right", spec), table("wrong", spec._replace(action=spec.reward))]
    )
    try:
        client = replay_service.Client(f"localhost:{server.port}")
        right, wrong = (
            reverb_utils.ReverbAddTrajectoryObserver(client, name, 2, stride_length=1)
            for name in ("right", "wrong")
        )
        assert rlds_to_reverb.push_rlds_to_reverb(data, right) == 5
        # Pairs of frames, but none across the end of an episode's boundary.
        assert client.server_info()["right"].current_size > 0
        with pytest.raises(ValueError, match="should match RLDS data spec"):
            rlds_to_reverb.push_rlds_to_reverb(data, wrong)
        right.close()
        wrong.close()
    finally:
        server.stop()
