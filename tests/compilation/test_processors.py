import pathlib

from tfrl.compilation import processors


def test_a_description_has_the_name_and_the_widest_vectors(monkeypatch):
    said = (
        "cpu MHz\t: 2900\nmodel name\t: Fast 9000\nflags\t\t: fpu avx avx2 sse4_1\n\n"
    )
    monkeypatch.setattr(pathlib.Path, "exists", lambda _: True)
    monkeypatch.setattr(pathlib.Path, "read_text", lambda _: said * 2)
    assert processors.name() == "Fast 9000"
    assert processors.description() == "Fast 9000 avx2"
    assert processors.identity() == "model name: Fast 9000\nflags: fpu avx avx2 sse4_1"


def test_without_what_linux_says_the_machine_is_named(monkeypatch):
    monkeypatch.setattr(pathlib.Path, "exists", lambda _: False)
    monkeypatch.setattr(processors, "_brand_on_macos", lambda: "")
    monkeypatch.setattr(processors.platform, "processor", lambda: "")
    monkeypatch.setattr(processors.platform, "machine", lambda: "arm64")
    assert processors.description() == processors.identity() == "arm64"
