import imageio.v2 as imageio
import numpy as np
import pytest
from dm_env import specs

from tests.acme.wrappers.scripted import Scripted, play
from tfrl.acme import wrappers


def pictures(shape=(16, 24, 3), dtype=np.uint8, frames=4):
    observations = [np.full(shape, 60 * i, dtype) for i in range(frames)]
    return Scripted(
        [0.0] * (frames - 1),
        observations=observations,
        observation_spec=specs.Array(shape, dtype),
    )


def read(path):
    with imageio.get_reader(path) as reader:
        return np.stack(list(reader.iter_data())), reader.get_meta_data()["fps"]


def test_every_second_episode_is_filmed_and_written_at_its_end(tmp_path):
    environment = wrappers.VideoWrapper(
        pictures(), path=tmp_path, filename="film", record_every=2, frame_rate=10
    )
    play(environment, 3)
    assert not list(tmp_path.iterdir())
    play(environment, 3)
    play(environment, 3)
    (path,) = (tmp_path / "videos").iterdir()
    assert path.name == "film_0002.mp4"
    frames, fps = read(path)
    assert (frames.shape, fps) == ((4, 16, 24, 3), 10)
    brightness = frames.mean((1, 2, 3))
    np.testing.assert_allclose(brightness, [0, 60, 120, 180], atol=8)


@pytest.mark.slow
def test_an_episode_that_is_left_is_written(tmp_path):
    environment = wrappers.VideoWrapper(pictures(), path=tmp_path, record_every=1)
    play(environment, 1)
    environment.reset()
    assert len(read(tmp_path / "videos" / "_0001.mp4")[0]) == 2
    environment.close()
    assert len(read(tmp_path / "videos" / "_0002.mp4")[0]) == 1
    assert environment.environment.closed


@pytest.mark.parametrize(
    ("figsize", "shape"),
    [
        ((32, 64), (32, 64)),
        pytest.param(40.0, (24, 32), marks=pytest.mark.slow),
        pytest.param(None, (18, 24), marks=pytest.mark.slow),
    ],
)
def test_pictures_are_scaled_and_may_be_grey(tmp_path, figsize, shape):
    environment = wrappers.VideoWrapper(
        pictures(shape=(18, 24)), path=tmp_path, record_every=1, figsize=figsize
    )
    play(environment, 3)
    assert read(tmp_path / "videos" / "_0001.mp4")[0].shape[1:3] == shape


def test_other_observations_need_a_method_that_draws(tmp_path):
    class Drawn(wrappers.VideoWrapper):
        def render_frame(self, observation):
            return np.zeros((16, 16, 3), np.uint8)

    inner = Scripted([0.0])
    with pytest.raises(ValueError, match=r"frame of dtype float64 and shape \(\), exp"):
        wrappers.VideoWrapper(inner, path=tmp_path, record_every=1).reset()
    play(Drawn(inner, path=tmp_path, record_every=1), 1)
    assert len(read(tmp_path / "videos" / "_0001.mp4")[0]) == 2


def test_filming_no_episode_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"record_every: expected .* got 0"):
        wrappers.VideoWrapper(pictures(), path=tmp_path, record_every=0)
