import pytest

from tfrl.algorithms import grids, worlds
from tfrl.environments import extras


def test_other_environments_have_no_wrappers():
    assert grids.wrappers_of("CartPole-v1", "flat") == ()


@pytest.mark.skipif(not extras.is_installed("minigrid"), reason="needs tfrl[minigrid]")
@pytest.mark.parametrize("num_envs", [1, 2])
def test_grids_are_flat_or_images(num_envs):
    """147 numbers of the image, and 96 characters of 28 kinds, as floats."""
    name = "MiniGrid-Empty-5x5-v0"
    flat = worlds.make_environment(name, num_envs, 0)
    assert flat.reset().observation.shape == [num_envs, 7 * 7 * 3 + 96 * 28]
    image = worlds.make_environment(name, num_envs, 0, grid_observations="image")
    assert image.reset().observation.shape == [num_envs, 7, 7, 3]
    assert (
        flat.reset().observation.dtype == image.reset().observation.dtype == "float32"
    )
    assert image.action_spec().maximum == 6
