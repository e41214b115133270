"""The loop over the replicas of a strategy; see `scripts/strategy_loops.py`.

The optimizers are plain gradient descent, and gradients are clipped.
"""

import json
import pathlib

import pytest

SCRIPT = pathlib.Path(__file__).parents[1] / "scripts" / "strategy_loops.py"


@pytest.fixture(scope="module")
def results(run):
    ended = run(str(SCRIPT))
    assert ended.code == 0, ended.errors[-3000:]
    return json.loads(ended.output.splitlines()[-1])


@pytest.mark.slow
def test_replicas_learn_what_one_device_learns_from_whole_batches(results):
    found = results["trained"]
    # Six updates, and the statistics of a normalizer.
    assert found["difference"] < 1e-5
    alone, shared = found["infos"]
    assert shared.pop("loss") == pytest.approx(alone.pop("loss"), rel=1e-5)
    assert str(shared) == str(alone)
    assert found["traces"] == 1


@pytest.mark.slow
def test_a_dataset_is_made_once_in_a_process_for_a_part_of_the_batch(results):
    ((part, seed),) = results["trained"]["seen"]
    assert part == 4
    # Folded with the number of the process.
    assert seed != 3
    assert results["trained"]["log"] == [4, 2, 3]


@pytest.mark.slow
def test_what_is_not_finite_in_one_replica_stops_all_and_changes_nothing(results):
    found = results["stopped"]
    assert "DqnAgent loss is not finite" in found["error"]
    assert found["counts"] == [1, 1]
    # As after the one update before; with the statistics of the normalizer.
    assert found["difference"] == 0
    assert found["goes_on"] == 2


@pytest.mark.slow
def test_a_run_goes_on_with_one_device_and_back_from_the_same_numbers(results):
    # After 3, 6, 9 and 12 iterations, with the differences after each resumption.
    assert results["resumed"]["found"] == [3, 0, 6, 0, 9, 0, 12]
    assert {"checkpoints", "policy", "metrics.csv"} < {*results["resumed"]["files"]}


@pytest.mark.slow
def test_importance_weights_do_not_depend_on_the_division_of_the_batch(results):
    found = results["prioritized"]
    # (1 / (N P))^beta of the N windows, for the 8 examples.
    assert found["weights"] == pytest.approx(found["expected"], rel=1e-5)


@pytest.mark.slow
def test_each_replica_sets_the_priorities_of_its_examples(results):
    assert results["prioritized"]["moved"] == 8


@pytest.mark.slow
def test_synchronized_statistics_are_those_of_the_whole_batch(results):
    # Three updates by gradient descent, with moving averages.
    assert results["synchronized"]["difference"] < 1e-5
    assert results["synchronized"]["between_replicas"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("batch", "batch_size: got 7, expected a multiple of the 2 replicas, such as "),
        ("agent", "strategy: the network has the variable "),
        ("unchecked", "strategy: the network has the variable "),
        ("clipping", "optimizer 'sgd"),
        ("accumulation", "optimizer 'sgd"),
        ("statistics", "got a BatchNormalization with several replicas"),
        (
            "by_itself",
            "which it applies by itself, expected a tfrl.utils.optimization.optimizers",
        ),
        (
            "compiled",
            "in a graph that XLA compiles, expected this only directly in the function",
        ),
        (
            "compiled_within",
            "in a graph that XLA compiles, expected this only directly in the function",
        ),
        (
            "compiled_loss",
            "in a graph that XLA compiles, expected this only directly in the function",
        ),
    ],
)
def test_what_replicas_cannot_do_is_refused(results, case, expected):
    assert expected in results["refusals"][case]
