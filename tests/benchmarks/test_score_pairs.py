import pytest

from benchmarks import score_pairs, scores


def rows_of(agent, environment, returns, steps=1000, preset="a"):
    return [
        {
            "agent": agent,
            "environment": environment,
            "preset": preset,
            "config_hash": "of the configuration",
            "steps": str(steps + seed),
            "return": str(value),
        }
        for seed, value in enumerate(returns)
    ]


@pytest.fixture
def one_group(monkeypatch):
    pairs = (("X", "Y"), ("Y", "X"), ("X", "Z"))
    monkeypatch.setattr(score_pairs, "GROUPS", {"Some actions": pairs})


def test_pairs_are_agents_of_the_table():
    agents = {entry.agent for entry in scores.ENTRIES}
    for names in score_pairs.GROUPS.values():
        for pair in names:
            assert agents >= set(pair)


def test_only_results_of_one_environment_and_as_many_steps_are_compared():
    rows = rows_of("X", "Cart", [1, 2], 50_000)
    rows += rows_of("X", "Cart", [3, 5], 500_000, "b")
    rows += rows_of("Y", "Cart", [4, 7], 49_000)
    rows += rows_of("Y", "Pole", [5, 8], 50_000)
    rows += rows_of("Y", "Cart", [9], 51_000, "c")
    rows += rows_of("Z", "Cart", [6, 9], 47_000)
    found = score_pairs.results(rows)
    ((x, y),) = score_pairs.matches(found, "X", "Y")
    assert x.returns.tolist() == [[1], [2]]
    assert (x.steps, y.environment, y.steps) == (50_000.5, "Cart", 49_000.5)
    assert not score_pairs.matches(found, "X", "Z")


@pytest.mark.slow
def test_the_section_has_each_environment_and_the_mean(tmp_path, one_group):
    """On Cart X wins 5 of 6; on Pole, with other numbers of runs, half of 4."""
    rows = rows_of("X", "Cart", [3, 4]) + rows_of("Y", "Cart", [1, 2, 3.5])
    rows += rows_of("X", "Pole", [1, 3]) + rows_of("Y", "Pole", [2, 2])
    lines = score_pairs.section(rows, tmp_path)
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith(("| X | Y", "| Y | X"))
    ]
    assert [row[:5] for row in cells[1:4]] == [
        ["X", "Y", "Cart", "1,000", "2 and 3"],
        ["X", "Y", "Pole", "1,000", "2 and 2"],
        ["X", "Y", "mean of these 2", "", ""],
    ]
    assert [row[5].split()[0] for row in cells[1:]] == [
        "0.83",
        "0.50",
        "0.67",
        "0.17",
        "0.50",
        "0.33",
    ]
    for row in cells[1:]:
        low, high = map(float, row[5].partition("(")[2].strip(")").split(","))
        assert 0 <= low < float(row[5].split()[0]) < high <= 1
        assert 0 < float(row[6]) <= 1
    for name in ("improvements", "profiles_some_actions"):
        picture = tmp_path / "scores" / f"{name}.png"
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert any(f"(scores/{picture.name})" in line for line in lines)


def test_without_comparable_rows_there_is_no_section(tmp_path, one_group):
    assert score_pairs.section(rows_of("X", "Cart", [1, 2]), tmp_path) == []
    assert not (tmp_path / "scores").exists()
