"""TF-Agents' `LazyLoader`."""

import sys

import pytest

from tfrl.utils import lazy_loader


def test_a_module_is_imported_when_it_is_used(tmp_path, monkeypatch):
    (tmp_path / "used_late.py").write_text("number = 3")
    monkeypatch.syspath_prepend(tmp_path)
    names = {}
    late = names["late"] = lazy_loader.LazyLoader("late", names, "used_late", "slow")
    assert "used_late" not in sys.modules
    with pytest.warns(UserWarning, match="slow"):
        assert late.number == 3
    assert names["late"] is sys.modules.pop("used_late")
    missing = lazy_loader.LazyLoader("missing", names, "no_such_module")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        _ = missing.number
