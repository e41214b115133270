"""The pages of the examples learn, and each is a page."""

import inspect
import re

import numpy as np
import pytest
import tensorflow as tf

from examples.pages import dqn, ppo, sac

PAGES = {
    dqn: dqn.Dqn,
    ppo: ppo.Ppo,
    sac: sac.Sac,
}
# Settings of a short training, and a return that it exceeds. The untrained policies
# get 12, 10 and -1,550.
TRAININGS = {
    dqn: (
        dqn.Settings(num_iterations=3_000, epsilon_steps=1_000, target_tau=0.02),
        120,
    ),
    ppo: (ppo.Settings(num_iterations=104), 200),
    sac: (sac.Settings(num_iterations=6_000), -500),
}


def name_of(page):
    return page.__name__.rpartition(".")[2]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_short_training_learns(page, capsys):
    settings, least = TRAININGS[page]
    page.main(settings)
    *progress, last = capsys.readouterr().out.splitlines()
    assert progress[-1].startswith(f"{settings.num_iterations:,}: ")
    assert float(re.search(r"of 100 episodes: (-?[\d.]+)$", last)[1]) > least


def recorded_discounts(program):
    """Steps a page's environments; returns the discounts that it records."""
    rows = program.step()
    if rows is None:
        rows = program.replay[0]
    _, _, _, discount, *_ = tf.split(rows, program.columns, axis=1)
    return discount[:, 0].numpy()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_future_counts_beyond_the_time_limit(page):
    program = PAGES[page](page.Settings())
    last = program.rules.max_episode_steps - 1
    program.elapsed.assign(tf.fill(program.elapsed.shape, float(last)))
    before = program.state.numpy()
    np.testing.assert_allclose(
        recorded_discounts(program), program.settings.gamma, rtol=1e-6
    )
    # A new episode begins.
    assert not program.elapsed.numpy().any()
    assert (np.abs(program.state.numpy() - before) > 0.01).any()


@pytest.mark.parametrize("page", [dqn, ppo], ids=name_of)
def test_no_future_counts_beyond_a_terminal_state(page):
    program = PAGES[page](page.Settings(num_envs=2))
    upright, fallen = [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]
    program.state.assign([upright, fallen])
    np.testing.assert_allclose(
        recorded_discounts(program), [program.settings.gamma, 0.0], rtol=1e-6
    )
    assert program.elapsed.numpy().tolist() == [1, 0]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_at_most_200_lines(page):
    assert len(inspect.getsource(page).splitlines()) <= 200
