"""Policy steps and the log-probability in their info."""

from collections import OrderedDict, namedtuple

from tfrl.trajectories import policy_step


def test_fields_default_to_the_empty_tuple():
    assert policy_step.PolicyStep(action=1) == (1, (), ())


def test_replace_returns_a_changed_copy():
    step = policy_step.PolicyStep(action=1, info=2)
    assert step.replace(action=3) == (3, (), 2)
    assert step.action == 1


def test_set_log_probability_on_empty_info():
    for empty in ((), None):
        info = policy_step.set_log_probability(empty, -0.5)
        assert info == policy_step.PolicyInfo(log_probability=-0.5)


def test_set_log_probability_on_a_mapping_copies_it():
    info = OrderedDict(other=1)
    changed = policy_step.set_log_probability(info, -0.5)
    assert changed == OrderedDict(other=1, log_probability=-0.5)
    assert type(changed) is OrderedDict
    assert "log_probability" not in info


def test_set_log_probability_on_a_namedtuple():
    info = namedtuple("Info", ["log_probability", "other"])(0.0, 1)
    assert policy_step.set_log_probability(info, -0.5) == (-0.5, 1)


def test_set_log_probability_leaves_other_infos_alone():
    assert policy_step.set_log_probability([1], -0.5) == [1]


def test_get_log_probability():
    assert policy_step.get_log_probability({"log_probability": -1.0}) == -1.0
    assert policy_step.get_log_probability({}, 7.0) == 7.0
    assert policy_step.get_log_probability(policy_step.PolicyInfo(-2.0)) == -2.0
    assert policy_step.get_log_probability((), 7.0) is None
