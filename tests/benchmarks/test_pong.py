"""The comparison on Pong: its curves while they grow, and the page's section."""

import sys

import pytest

from benchmarks import pong


def row(run, frames, value, seconds):
    return {
        "run": run,
        "seed": "0",
        "frames": str(frames),
        "return": str(value),
        "seconds": str(seconds),
        "commit": "1234567",
        "processor": "A processor",
    }


@pytest.fixture
def printing(monkeypatch):
    """Replaces the training by a program that prints lines."""

    def print_lines(*lines, status=0):
        program = f"import sys; print(*{lines!r}, sep='\\n'); sys.exit({status})"
        command = [sys.executable, "-c", program]
        monkeypatch.setattr(pong, "command", lambda run, seconds, seed: command)

    return print_lines


def test_the_points_of_a_run_replace_those_of_its_earlier_run(tmp_path, printing):
    path = tmp_path / "pong.csv"
    printing('{"frames": 4, "return": -20.5, "seconds": 1.25}')
    pong.train("ppo", 10.0, 0, path)
    pong.train("sb3", 10.0, 0, path)
    printing(
        "PPO on Pong",
        '{"frames": 4, "return": -21, "seconds": 1}',
        '{"frames": 8, "return": -20, "seconds": 2}',
    )
    pong.train("ppo", 10.0, 0, path)
    points = [(r["run"], r["frames"], r["return"]) for r in pong.read(path)]
    assert points == [
        ("sb3", "4", "-20.50"),
        ("ppo", "4", "-21.00"),
        ("ppo", "8", "-20.00"),
    ]


def test_a_run_that_fails_keeps_its_points_and_is_an_error(tmp_path, printing):
    printing('{"frames": 4, "return": -20.5, "seconds": 1.25}', status=3)
    with pytest.raises(RuntimeError, match="DQN ended with status 3"):
        pong.train("dqn", 10.0, 0, tmp_path / "pong.csv")
    assert len(pong.read(tmp_path / "pong.csv")) == 1


def test_both_runs_of_ppo_are_compared_at_the_frames_that_both_have_seen(tmp_path):
    rows = [
        row("ppo", 1_000, -20.0, 5),
        row("ppo", 3_000, 3.5, 15),
        row("ppo", 4_000, 9.0, 20),
        row("sb3", 1_000, -20.5, 9),
        row("sb3", 3_200, 2.5, 28),
    ]
    picture = tmp_path / "scores" / "pong.png"
    text = " ".join(pong.section(rows, picture))
    assert "| PPO | 4,000 | 9.0 | 20 | 200 | 1234567 | A processor |" in text
    assert "After 3,200 frames, which both runs of PPO have seen, tfrl's" in text
    assert "returns 3.5 after 15 seconds" in text
    assert "Stable-Baselines3's 2.5 after 28 seconds" in text
    assert "DQN |" not in text
    assert picture.stat().st_size > 1_000
    assert pong.section([], picture) == []
