"""Self-play learns tic-tac-toe to the end: no line of play beats the policy."""

import functools

import numpy as np
import pytest

import tfrl

LINES = (
    *((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6)),
    *((1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)),
)
EMPTY = (0,) * 9


def has_won(board, player):
    return any(all(board[i] == player for i in line) for line in LINES)


def moves(board):
    return [i for i in range(9) if not board[i]]


def moved(board, place):
    """The board after a move of the player who has 1, seen by the other one."""
    return tuple(-x for x in (*board[:place], 1, *board[place + 1 :]))


@functools.cache
def value(board):
    """The result of best play for the player who moves."""
    if has_won(board, -1):
        return -1
    if not moves(board):
        return 0
    return max(-value(moved(board, place)) for place in moves(board))


def best_moves(board):
    return [x for x in moves(board) if -value(moved(board, x)) == value(board)]


def result(choose, others, begins):
    """The learner's result of a game: 1, 0 or -1."""
    board, is_learners = EMPTY, begins
    while True:
        place = (choose if is_learners else others)(board)
        assert place in moves(board)
        board = moved(board, place)
        if has_won(board, -1):
            return 1 if is_learners else -1
        if not moves(board):
            return 0
        is_learners = not is_learners


def test_best_play_is_a_draw():
    assert value(EMPTY) == 0
    rng = np.random.default_rng(0)

    def best(board):
        return rng.choice(best_moves(board))

    assert {result(best, best, begins) for begins in (True, False)} == {0}
    games = [result(lambda x: moves(x)[0], best, i % 2 == 0) for i in range(20)]
    assert -1 in games
    assert 1 not in games


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ppo_never_loses_against_best_play():
    pytest.importorskip("pgx")
    ppo = tfrl.PPO("pgx/tic_tac_toe", seed=1).learn(progress=False)

    @functools.cache
    def choose(board):
        cells = np.reshape(board, (3, 3))
        seen = {
            "observation": np.stack([cells == 1, cells == -1], -1),
            "action_mask": np.array(board) == 0,
        }
        return int(ppo.predict(seen)[0])

    rng = np.random.default_rng(0)
    games = [
        result(choose, lambda x: rng.choice(best_moves(x)), begins=i % 2 == 0)
        for i in range(100)
    ]
    assert min(games) == 0
    ratings = [row["elo"] for row in ppo.rows if "elo" in row]
    assert ratings[0] == 0
    assert min(ratings[-5:]) > 300
