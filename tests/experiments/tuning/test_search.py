"""Where tuning searches: words, own ranges, and Optuna's distributions."""

import optuna
import pytest

import tfrl
from tfrl.algorithms import registry
from tfrl.algorithms.settings import Range, log, uniform
from tfrl.experiments.tuning import search

SETTINGS = tfrl.DQN


def test_without_words_the_live_fields_with_a_range_are_searched():
    found = search.fields(SETTINGS, None)
    assert found == {
        "final_epsilon": uniform(0.0, 0.2),
        "gamma": (0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999),
        "learning_rate": log(1e-5, 1e-2),
        "target_update_tau": log(0.001, 0.08),
    }
    every = search.fields(SETTINGS, "all")
    assert every == SETTINGS.search_ranges()
    assert every.keys() - found.keys() == {"batch_size"}
    without_live = registry.find("reinforce")
    assert search.fields(without_live, None) == without_live.search_ranges()


@pytest.mark.parametrize("name", registry.CLASSES)
def test_ranges_are_within_what_is_allowed(name):
    kind = registry.find(name)
    if kind.search_ranges():
        search.fields(kind, "all")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("1e-4..1e-2:log", Range(1e-4, 1e-2, is_log=True)),
        ("0.1..0.5", Range(0.1, 0.5)),
        ("0.1,0.2", (0.1, 0.2)),
        ("0.5", (0.5,)),
    ],
)
def test_words_say_a_range(words, expected):
    found = search.fields(SETTINGS, {"learning_rate": words})
    assert found == {"learning_rate": expected}
    assert search.fields(SETTINGS, {"learning_rate": search.text(expected)}) == found


def test_words_follow_the_kind_of_the_field():
    found = search.fields(
        tfrl.PPO,
        {
            "minibatch_size": "32..512:log",
            "activation": "tanh,relu",
            "fc_layer_params": "(64,64),(256,)",
            "normalize_rewards": "True,False",
            "lambda_value": None,
        },
    )
    assert found["minibatch_size"] == Range(32, 512, is_log=True)
    assert isinstance(found["minibatch_size"].low, int)
    assert found["activation"] == ("tanh", "relu")
    assert found["fc_layer_params"] == ((64, 64), (256,))
    assert found["normalize_rewards"] == (True, False)
    made = search.distributions(found)
    assert made["minibatch_size"] == optuna.distributions.IntDistribution(
        32, 512, log=True
    )
    drawn = {
        "minibatch_size": 64,
        "activation": "relu",
        "fc_layer_params": made["fc_layer_params"].choices[1],
        "normalize_rewards": False,
        "lambda_value": 0.9,
    }
    assert search.values(found, drawn) == {**drawn, "fc_layer_params": (256,)}


@pytest.mark.parametrize("words", ["false,true", "False,True", "0,1"])
def test_truth_values_are_those_of_flags(words):
    assert search.fields(tfrl.DQN, {"dueling": words}) == {"dueling": (False, True)}


def test_optunas_distributions_are_taken_as_they_are():
    given = optuna.distributions.FloatDistribution(0.1, 0.5, step=0.1)
    found = search.fields(SETTINGS, {"gamma": given})
    assert search.distributions(found) == {"gamma": given}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"gama": None}, r"got 'gama', expected settings .* are batch_size, final_eps"),
        ({"loss": None}, r"loss has no default range, .* 1e-5\.\.1e-2:log"),
        ({"gamma": "0.9..1.5"}, r"gamma: expected a number in \[0, 1\], got 1.5"),
        ({"gamma": "0.9..0.8"}, r"got '0.9..0.8' for gamma, expected a range of ris"),
        ({"gamma": "0..0.8:log"}, r"above 0 with :log"),
        ({"gamma": "0.1..0.8:lin"}, r"got '0.1..0.8:lin'"),
        ({"batch_size": "16..64.5"}, r"got '16..64.5'"),
        (
            {"loss": "huber,other"},
            r"loss: expected one of 'squared', 'huber', got 'oth",
        ),
        ({"dueling": "no,maybe"}, r"got 'no,maybe' for dueling, expected truth val"),
        ([], r"got no field"),
    ],
)
def test_wrong_ranges_are_errors(given, error):
    with pytest.raises(ValueError, match=error):
        search.fields(SETTINGS, given)
