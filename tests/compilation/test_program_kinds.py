"""What a stored program depends on."""

import pytest

from tfrl.compilation import program_kinds

INFORMATION = """Model: \t\t {model}
IRQ:   \t\t 42
GPU UUID: \t GPU-{uuid}
Bus Location: \t 0000:{bus}:00.0
"""


@pytest.fixture
def driver(tmp_path):
    """Returns a function that describes GPUs as NVIDIA's driver does."""

    def describe(name, *models, version="580.159.04", uuid="6f0a"):
        folder = tmp_path / name
        for bus, model in enumerate(models):
            (folder / f"gpus/0000:0{bus}:00.0").mkdir(parents=True)
            text = INFORMATION.format(model=model, uuid=uuid, bus=f"0{bus}")
            (folder / f"gpus/0000:0{bus}:00.0/information").write_text(text)
        (folder / "version").write_text(f"NVRM version: NVIDIA {version}\n")
        return program_kinds.graphics(str(folder))

    return describe


def test_a_machine_without_a_gpu_has_no_graphics(tmp_path):
    assert program_kinds.graphics(str(tmp_path / "nvidia")) == []


def test_another_model_number_of_gpus_or_driver_is_another_kind(driver):
    kinds = [
        driver("one", "NVIDIA H100"),
        driver("other model", "NVIDIA A100"),
        driver("two", "NVIDIA H100", "NVIDIA H100"),
        driver("new driver", "NVIDIA H100", version="590.1"),
    ]
    assert len({tuple(kind) for kind in kinds}) == 4


def test_another_gpu_of_the_model_is_of_the_same_kind(driver):
    assert driver("one", "NVIDIA H100") == driver("other", "NVIDIA H100", uuid="77ab")
