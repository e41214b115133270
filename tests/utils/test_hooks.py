"""Overrides that are refused, and those that come later than others."""

import pytest

from tfrl.utils import hooks


class Base(hooks.RefusesOverrides):
    _refused_overrides = {"kept": "write _kept", "absent": "write present"}  # noqa: RUF012

    def kept(self):
        return self._kept()

    def _kept(self):
        return 1


class Derived(Base):
    _refused_overrides = {"other": "write another"}  # noqa: RUF012


@pytest.mark.parametrize("base", [Base, Derived])
@pytest.mark.parametrize(
    ("name", "remedy"), [("kept", "write _kept"), ("absent", "write present")]
)
def test_an_override_is_refused_when_the_class_is_defined(base, name, remedy):
    with pytest.raises(
        TypeError, match=f"Mine.{name}: got an override that Base .*; {remedy}."
    ):
        type("Mine", (base,), {name: lambda self: 2})


def test_an_override_that_a_mixin_brings_is_refused_too():
    mixin = type("Mixin", (), {"kept": lambda self: 2})
    with pytest.raises(TypeError, match=r"Mine.kept: got an override"):
        type("Mine", (mixin, Base), {})


def test_a_class_refuses_for_its_subclasses_alone():
    assert type("Mine", (Base,), {"other": lambda self: 2})().other() == 2
    with pytest.raises(TypeError, match=r"Mine.other: got an override that Derived"):
        type("Mine", (Derived,), {"other": lambda self: 2})


def test_other_methods_may_be_overridden():
    assert type("Mine", (Derived,), {"_kept": lambda self: 2})().kept() == 2


class WithKeywords(hooks.RefusesOverrides):
    _hook_keywords = {"loss": ("values", "returns")}  # noqa: RUF012


class WithMoreKeywords(WithKeywords):
    _hook_keywords = {"loss": ("values", "returns", "weights")}  # noqa: RUF012

    def loss(self, values, returns, weights):
        del values, returns, weights


def test_an_override_has_to_take_the_arguments_that_it_is_called_with_by_name():
    def of_tf_agents(self, time_steps, returns, weights=None):
        return self, time_steps, returns, weights

    def short(self, values, returns):
        return self, values, returns

    assert type("Mine", (WithKeywords,), {"loss": short})
    expected = r"expected loss\(self, values, returns\), .* called by name"
    with pytest.raises(TypeError, match=expected):
        type("Mine", (WithKeywords,), {"loss": of_tf_agents})
    with pytest.raises(TypeError, match=r"expected loss\(self, values, returns, weigh"):
        type("Mine", (WithMoreKeywords,), {"loss": short})


class Both:
    def one(self):
        pass

    def two(self):
        pass


class One(Both):
    def one(self):
        pass


def test_the_later_of_two_overrides():
    assert hooks.overrides_later(One, "one", "two")
    assert not hooks.overrides_later(One, "two", "one")
    assert not hooks.overrides_later(Both, "one", "two")
    assert hooks.overrides_later(type("Mine", (One,), {}), "one", "two")
    two = type("Mine", (One,), {"two": lambda self: None})
    assert not hooks.overrides_later(two, "one", "two")
