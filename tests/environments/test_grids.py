import gymnasium
import numpy as np
import pytest

import tfrl
from tfrl import train
from tfrl.algorithms import worlds
from tfrl.environments import extras


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


@pytest.mark.skipif(not extras.is_installed("minigrid"), reason="needs tfrl[minigrid]")
def test_a_grid_in_colours_is_what_minigrid_draws():
    name = "MiniGrid-Empty-5x5-v0"
    made = worlds.make_environment(name, 1, 3, grid_observations="rgb")
    found = made.reset().observation
    assert (found.shape, found.dtype) == ([1, 40, 40, 3], "uint8")
    drawn = gymnasium.make(name, render_mode="rgb_array", tile_size=8, highlight=True)
    drawn.reset(seed=3)
    np.testing.assert_array_equal(found[0], drawn.render())


class Kill(train.Callback):
    """Ends a run after a checkpoint, with an error that leaves no other trace."""

    interval = 3

    def on_interval(self, iteration):
        raise RuntimeError("killed")


def weights_after_four_iterations(folder, name, kind, callbacks=()):
    algorithm = tfrl.PPO(
        name,
        preset="ppo_minigrid",
        logdir=folder,
        seed=4,
        jit_compile=False,
        num_envs=2,
        collect_steps_per_iteration=40,
        num_epochs=1,
        minibatch_size=40,
        fc_layer_params=(8,),
        grid_observations=kind,
        conv_layer_params=((4, 2, 1),) if kind == "image" else (),
        normalize_observations=kind == "flat",
        num_eval_episodes=1,
        eval_interval=100,
        log_interval=1,
        checkpoint_interval=2,
    )
    algorithm.learn(4 * 80, callbacks=callbacks, progress=False)
    return [variable.numpy() for variable in algorithm.policy.variables()]


@pytest.mark.slow
@pytest.mark.skipif(not extras.is_installed("minigrid"), reason="needs tfrl[minigrid]")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MiniGrid-Empty-Random-5x5-v0", "flat"),
        ("MiniGrid-DoorKey-5x5-v0", "image"),
    ],
)
def test_a_run_on_a_grid_that_was_killed_ends_with_the_same_weights(
    name, kind, tmp_path
):
    expected = weights_after_four_iterations(tmp_path / "whole", name, kind)
    with pytest.raises(RuntimeError, match="killed"):
        weights_after_four_iterations(tmp_path / "run", name, kind, [Kill()])
    found = weights_after_four_iterations(tmp_path / "run", name, kind)
    for value, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, other)
