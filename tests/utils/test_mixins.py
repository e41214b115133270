"""Overrides that are refused or come later than others, and untracked attributes."""

import keras
import pytest
import tensorflow as tf

from tfrl.utils import mixins


class Base(mixins.RefusesOverrides):
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


class WithKeywords(mixins.RefusesOverrides):
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
    assert mixins.overrides_later(One, "one", "two")
    assert not mixins.overrides_later(One, "two", "one")
    assert not mixins.overrides_later(Both, "one", "two")
    assert mixins.overrides_later(type("Mine", (One,), {}), "one", "two")
    two = type("Mine", (One,), {"two": lambda self: None})
    assert not mixins.overrides_later(two, "one", "two")


# --- Untracked attributes.


class Module(tf.Module, mixins.Untracked):
    pass


class Layer(keras.layers.Layer, mixins.Untracked):
    pass


@pytest.mark.parametrize("kind", [Module, Layer])
def test_a_nest_stays_the_same_object(kind):
    tracked, untracked = ([1, (2,)] for _ in range(2))
    holder = kind()
    holder.tracked = tracked
    holder._set_untracked("untracked", untracked)
    assert holder.untracked is untracked
    assert holder.tracked is not tracked


def test_checkpoints_do_not_look_into_it():
    holder = Module()
    holder._set_untracked("hidden", [tf.Variable(1)])
    holder.seen = tf.Variable(2)
    children = tf.train.TrackableView(holder).children(holder)
    assert set(children) == {"seen"}
