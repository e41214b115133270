"""DreamerV3 as a class: its run draws what its model imagines."""

import pytest

import tfrl

SMALL = {
    "num_iterations": 2,
    "initial_collect_steps": 40,
    "replay_capacity": 100,
    "batch_size": 2,
    "sequence_length": 8,
    "imagination_length": 2,
    "num_eval_episodes": 1,
    "jit_compile": False,
}


@pytest.mark.slow
def test_the_report_of_a_run_shows_what_the_model_imagines(tmp_path):
    dreamer = tfrl.Dreamer("Pendulum-v1", logdir=tmp_path / "run", **SMALL)
    dreamer.learn()
    picture = (tmp_path / "run" / "imagined.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert "What the world model imagines" in (
        tmp_path / "run" / "report.html"
    ).read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_picture_is_of_a_replayed_sequence(tmp_path):
    dreamer = tfrl.Dreamer("CartPole-v1", **SMALL)
    dreamer.learn()
    dreamer.draw_pictures(tmp_path)
    assert (tmp_path / "imagined.png").stat().st_size > 5_000
