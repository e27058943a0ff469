"""The meaning of `auto`, compared with torch, or without torch if no driver is installed."""

import torch

from tests.processes import printed
from train import device
from train.device import Device, default_device, multiplies_bfloat16


def test_torch_is_imported_only_if_a_driver_is_installed():
    """The settings of an experiment file do not import it either."""
    code = (
        "import sys, train.settings, train.models.shapes; from train import device; "
        "found = device.default_device(); "
        "print(device._has_driver(), found.kind, 'torch' in sys.modules)"
    )
    driver, device, imported = printed(code).split()
    assert driver == imported
    if driver == "False":
        assert device == "cpu"
        assert not torch.cuda.is_available()


def test_default_device_queries_torch_if_a_driver_is_installed(monkeypatch):
    monkeypatch.setattr(device, "_has_driver", lambda: True)
    for supported in (True, False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda supported=supported: supported)
        assert default_device.__wrapped__() == Device("cuda", bfloat16=supported)


def test_auto_and_fastest_choose_the_precision():
    gpu, older, mac = Device("cuda", bfloat16=True), Device("cuda"), Device("mps", bfloat16=True)
    # The quickstart's numbers are the same on every processor.
    cpu, plain = Device("cpu", bfloat16=True), Device("cpu")
    devices = (gpu, older, mac, cpu, plain)
    training = {setting: [processor.training_precision(setting) for processor in devices]
                for setting in ("auto", "fastest")}  # fmt: skip
    single, half = "float32", "bfloat16"
    assert training["auto"] == [half, single, single, single, single]
    # Training takes the processor on a Mac.
    assert training["fastest"] == [half, single, single, half, single]
    assert plain.scoring_format("auto") == gpu.scoring_format("auto", device_kind="cpu") == single
    assert gpu.scoring_format("auto") == gpu.scoring_format("auto", device_kind="cuda:1") == "auto"
    assert plain.scoring_format("auto", device_kind="cuda") == "auto"


def test_bfloat16_support_is_read_from_processor_flags():
    flags = "processor : 0\nmodel name : avx512_bf16 only in the name\nflags : fpu avx512f {}\n"
    assert multiplies_bfloat16(flags.format("avx512_bf16"))
    assert multiplies_bfloat16(flags.format("amx_bf16 amx_tile"))
    for without in ("", "avx512_bf16x", "avx512_fp16"):
        assert not multiplies_bfloat16(flags.format(without))
    assert not multiplies_bfloat16("Features : fp asimd bf16\n")
    assert not multiplies_bfloat16("")
