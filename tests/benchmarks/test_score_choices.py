from benchmarks import score_choices, score_verdicts


def _candidate(agent, steps, seconds, *returns):
    outcome = score_verdicts.Outcome(tuple(returns))
    return score_choices.Candidate(agent, steps, seconds, outcome)


def test_best_has_the_largest_mean_and_what_is_a_deviation_below():
    # 90, 100 and 110 deviate by 10.
    first = _candidate("A", 100_000, 300.0, 90.0, 100.0, 110.0)
    slow = _candidate("B", 100_000, 200.0, 90.5, 90.5)
    fast = _candidate("C", 100_000, 100.0, 90.0)
    below = _candidate("D", 100_000, 1.0, 89.0, 90.0)
    assert score_choices.best([below, slow, first, fast]) == [first, fast, slow]


def test_a_single_best_run_is_level_with_equal_ones_only():
    first = _candidate("A", 100_000, 300.0, 500.0)
    equal = _candidate("B", 100_000, 200.0, 500.0, 500.0)
    below = _candidate("C", 100_000, 200.0, 499.9, 499.9)
    assert score_choices.best([first, below, equal]) == [first, equal]


def test_choices_name_the_budgets_at_which_more_steps_help():
    small = _candidate("A", 20_000, 1.0, 1.0)
    # A tenth above 100,000 steps counts as 100,000.
    larger = _candidate("B", 109_000, 1.0, 2.0)
    useless = _candidate("C", 300_000, 1.0, 1.5)
    best = _candidate("D", 1_000_000, 1.0, 3.0)
    found = list(score_choices.choices([best, useless, larger, small]))
    # Up to 30,000 steps there is no choice.
    assert found == [(100_000, [larger]), (1_000_000, [best])]


def test_text_has_the_return_the_seconds_and_a_single_seed():
    assert _candidate("A", 1, 1234.4, 1.0, 2.0).text() == "A: 1.5 (1,234 s)"
    assert _candidate("A", 1, 3.0, 0.25).text() == "A: 0.250 (3 s, one seed)"
