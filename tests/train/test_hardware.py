"""What `auto` stands for, against torch, and without torch where no driver is installed."""

import subprocess
import sys

import pytest
import torch

from train import hardware
from train.hardware import Hardware, this_machine


def test_this_machine_is_what_torch_says():
    found = this_machine()
    assert (found.device == "cuda") == torch.cuda.is_available()
    if found.device == "cuda":
        assert found.bfloat16 == torch.cuda.is_bf16_supported()


def test_no_torch_is_imported_where_there_is_no_driver():
    code = (
        "import sys; from train import hardware; found = hardware.this_machine(); "
        "print(hardware._has_driver(), found.device, 'torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    driver, device, imported = said.stdout.split()
    assert driver == imported
    if driver == "False":
        assert device == "cpu"
        assert not torch.cuda.is_available()


def test_torch_is_asked_where_a_driver_is_installed(monkeypatch):
    monkeypatch.setattr(hardware, "_has_driver", lambda: True)
    for supported in (True, False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda supported=supported: supported)
        assert this_machine.__wrapped__() == Hardware("cuda", bfloat16=supported)


@pytest.mark.parametrize("asked", ["float32", "bfloat16", "float16"])
def test_a_format_that_was_asked_for_is_kept(asked):
    for one in (Hardware("cpu"), Hardware("cuda"), Hardware("cuda", bfloat16=True)):
        assert one.training_precision(asked) == one.scoring_format(asked) == asked


def test_auto_depends_on_the_device_that_computes():
    gpu = Hardware("cuda", bfloat16=True)
    assert gpu.training_precision("auto") == "bfloat16"
    assert Hardware("cuda").training_precision("auto") == "float32"
    assert Hardware("mps", bfloat16=True).training_precision("auto") == "float32"
    assert Hardware("cpu").scoring_format("auto") == "float32"
    assert gpu.scoring_format("auto", device="cpu") == "float32"
    assert gpu.scoring_format("auto") == gpu.scoring_format("auto", device="cuda:1") == "auto"
    assert Hardware("cpu").scoring_format("auto", device="cuda") == "auto"
