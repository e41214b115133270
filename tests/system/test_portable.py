"""A portable process rounds alike on x86 processors with AVX2."""

import os
import platform
import subprocess
import sys
from importlib import metadata

import pytest

from tests.portable_checksums import CHECKSUMS, VERSIONS
from tfrl.system import portable, versions

OWN_FLAGS = (
    "--xla_cpu_max_isa=AVX2 "
    "--xla_backend_extra_options=xla_cpu_disable_platform_dependent_math "
    "--xla_cpu_experimental_ynn_fusion_type="
)


@pytest.fixture
def install(monkeypatch):
    """Returns a function that installs the settings; it returns the environment."""
    for name in (*portable._SETTINGS, "NPY_DISABLE_CPU_FEATURES", "XLA_FLAGS"):
        monkeypatch.setenv(name, "")

    def run(value="1", flags="", modules=()):
        for name in {"numpy", "tensorflow"}.difference(modules):
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setenv(portable.VARIABLE, value)
        monkeypatch.setenv("XLA_FLAGS", flags)
        portable.install()
        return os.environ

    yield run
    monkeypatch.undo()


@pytest.mark.parametrize("value", ["", "0"])
def test_nothing_is_set_unless_it_is_asked_for(install, value):
    found = install(value, modules=["numpy"])
    assert (found["XLA_FLAGS"], found["ONEDNN_MAX_CPU_ISA"]) == ("", "")
    assert not portable.is_on()


def test_each_library_is_limited_and_flags_of_the_user_stay(install):
    found = install(flags="--xla_dump_to=/tmp/dump")
    assert found["XLA_FLAGS"] == f"--xla_dump_to=/tmp/dump {OWN_FLAGS}"
    assert found["ONEDNN_MAX_CPU_ISA"] == "AVX2"
    assert found["TF_NUM_INTRAOP_THREADS"] == found["OPENBLAS_NUM_THREADS"] == "1"
    assert found["OPENBLAS_CORETYPE"] == "Haswell"
    assert "AVX512_ICL" in found["NPY_DISABLE_CPU_FEATURES"]


def test_a_child_has_the_settings_already_and_may_import_numpy_first(install):
    flags = install()["XLA_FLAGS"] + " --xla_dump_to=/tmp/dump"
    assert install(flags=flags, modules=["numpy"])["XLA_FLAGS"] == flags


def test_a_program_that_starts_again_may_import_numpy_first(install, monkeypatch):
    started = []
    monkeypatch.setattr(portable.os, "execv", lambda *words: started.append(words))
    monkeypatch.setenv(portable.VARIABLE, "0")
    portable.start_again()
    assert started[0][0] == started[0][1][0] == sys.executable
    portable.install()  # As in the new process.
    assert portable.is_on()
    assert OWN_FLAGS in os.environ["XLA_FLAGS"]


def test_the_environment_and_the_flag_may_not_contradict_each_other(monkeypatch):
    monkeypatch.setenv("TFRL_PORTABLE", "1")
    portable.choose(is_portable=True)
    with pytest.raises(ValueError, match=r"got False, .*TFRL_PORTABLE is '1' in the"):
        portable.choose(is_portable=False)
    monkeypatch.delenv("TFRL_PORTABLE")
    portable.choose(is_portable=False)


def test_a_library_that_has_chosen_its_code_already_is_an_error(install):
    with pytest.raises(
        RuntimeError, match=r"^TFRL_PORTABLE: got '1', but numpy .*first"
    ):
        install(modules=["numpy"])


@pytest.mark.parametrize(
    "flags", ["flags.txt", "--xla_cpu_max_isa=AVX", "--xla_backend_extra_options=x"]
)
def test_other_limits_of_xla_are_an_error(install, flags):
    with pytest.raises(RuntimeError, match=r"^XLA_FLAGS: got .* leave them out"):
        install(flags=flags)


@pytest.mark.parametrize(
    ("numpy", "name"), [("2.3.5", "AVX512_SKX"), ("2.4.0", "X86_V4"), ("3.0", "X86_V4")]
)
def test_numpy_is_told_the_names_that_it_has(numpy, name):
    assert name in portable._wide_vectors(numpy).split()


def test_what_a_run_records_says_that_it_is_portable(monkeypatch):
    found = {}
    for value in ("0", "1"):
        monkeypatch.setenv(portable.VARIABLE, value)
        found[value] = versions.found.__wrapped__().get("portable")
    assert found == {"0": None, "1": "yes"}


FAST = ("dqn/plain",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [FAST, pytest.param(tuple(CHECKSUMS), marks=pytest.mark.slow)],
    ids=["fast", "all"],
)
def test_runs_end_with_the_weights_that_another_processor_computed(names, tmp_path):
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("the checksums are of Linux on x86-64")
    if any(metadata.version(name) != x for name, x in VERSIONS.items()):
        pytest.skip(f"the checksums are of {VERSIONS}")
    ended = subprocess.run(
        [sys.executable, "-m", "tests.portable_runs", *names],
        env={**os.environ, portable.VARIABLE: "1", "XLA_FLAGS": ""},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    found = dict(line.split() for line in ended.stdout.splitlines())
    assert found == {name: CHECKSUMS[name] for name in names}
