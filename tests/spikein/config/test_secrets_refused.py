"""Experiment files leak neither passwords nor protected texts."""

import pytest
from pydantic import ValidationError

from inject.errors import InputErrors
from inject.settings import plain
from inject.variants.settings import ParaphraseVariant, Variants
from inject.variants.variants_step import LocalModels, variant_identity
from spikein.config.load import resolved_yaml
from tests.command_line import invoke
from tests.spikein.samples import SAMPLE, line_of, read, write_sample

LOCAL = LocalModels("none:identity", "none:writer")
SECRET = "PASSW0RD"
URL = f"http://user:{SECRET}@127.0.0.1:9/v1"
VARIANTS = """\
variants:
  of:
    - {{kind: paraphrase, by: model, model: m, {more}}}
"""


def with_variant(more: str, text: str = SAMPLE) -> str:
    return text + VARIANTS.format(more=more)


def problems(*overrides: str, text: str = SAMPLE) -> str:
    with pytest.raises(InputErrors) as caught:
        read(*overrides, text=text)
    report = "\n".join(caught.value.problems)
    assert SECRET not in report
    assert SECRET not in str(caught.value)
    return report


def test_a_password_in_a_url_is_refused_with_its_line_and_never_repeated():
    text = with_variant(f'base_url: "{URL}"')
    report = problems(text=text)
    assert (
        f"small.yaml:{line_of('base_url', text)}: variants.of.0.base_url: contains a user" in report
    )
    assert "api_key_variable: NAME" in report


@pytest.mark.parametrize(
    "text",
    [
        SAMPLE.replace("{data: files}", f'{{data: "{URL}"}}'),
        SAMPLE + f"sweep: {{train.lr: [1e-3, '{URL}']}}\n",
        SAMPLE + f"detect: {{reference: 'https://hub/x?token={SECRET}'}}\n",
        SAMPLE.replace("{data: files}", f"{{who: 'user:{SECRET}'}}")
        + "detect: {reference: 'https://${who}@hub/x'}\n",
        SAMPLE + f"wrong: '{URL}'\n",
    ],
)
def test_a_secret_is_refused_anywhere_and_no_other_problem_repeats_it(text):
    assert "experiment files are copied into run folders" in problems(text=text)


def test_an_override_with_a_password_is_refused_without_repeating_it():
    text = with_variant('base_url: "http://127.0.0.1:9/v1"')
    report = problems(f"variants.of.0.base_url={URL}", text=text)
    assert "override variants.of.0.base_url=http://***@" in report
    for wrong in (f"{URL}", f"a={{'{URL}", f"a..b={URL}"):
        problems(wrong)


def test_the_command_line_shows_no_password(tmp_path):
    path = write_sample(tmp_path, with_variant(f'base_url: "{URL}"'))
    for command in (["plan", str(path)], ["run", str(path)], ["run", str(path), f"x={URL}"]):
        done = invoke(*command, "--store", tmp_path / "store", code=2)
        assert SECRET not in done.output
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    "more",
    [{"base_url": URL}, {"base_url": "http://h/v1", "api_key_variable": f"sk-{SECRET * 3}"}],
)
def test_settings_made_in_code_also_refuse_secrets(more):
    with pytest.raises(ValidationError) as caught:
        Variants.model_validate(
            {"of": [{"kind": "paraphrase", "by": "model", "model": "m", **more}]}
        )
    assert SECRET not in str(caught.value)


def test_a_key_in_place_of_its_variable_is_not_repeated():
    more = f'base_url: "http://h/v1", api_key_variable: "sk-{SECRET}-short"'
    assert "never the key itself" in problems(text=with_variant(more))


GPQA = SAMPLE.replace(
    "{dataset: fictional, members: 20, nonmembers: 20}",
    "{dataset: gpqa, name: exam, path: x.zip, members: 20, nonmembers: 20}",
)
SERVER = 'base_url: "http://127.0.0.1:9/v1"'


def test_a_protected_dataset_is_sent_to_a_server_only_by_name():
    text = problems(text=with_variant(SERVER, GPQA))
    assert "variants.of.0.send_protected: the texts of protected data (exam) would be sent" in text
    assert "send_protected: [exam]" in text
    experiment = read(text=with_variant(f"{SERVER}, send_protected: [exam]", GPQA))
    assert experiment.variants.of[0].send_protected == ("exam",)
    assert "send_protected" in resolved_yaml(experiment)
    read(text=with_variant("temperature: 0.5", GPQA))
    read(text=with_variant(SERVER))


def test_a_name_that_is_not_a_protected_dataset_is_refused():
    report = problems(text=with_variant(f"{SERVER}, send_protected: [exma]", GPQA))
    assert "'exma' names no protected dataset of this experiment" in report
    assert "Protected here: exam" in report
    assert "Protected here: none" in problems(
        text=with_variant(f"{SERVER}, send_protected: [fictional]")
    )
    assert "belongs to a server" in problems(text=with_variant("send_protected: [exam]", GPQA))


def test_permission_to_send_is_not_part_of_the_identity():
    values = {"kind": "paraphrase", "by": "model", "model": "m", "base_url": "http://h/v1"}
    first = ParaphraseVariant.model_validate(values)
    second = ParaphraseVariant.model_validate({**values, "send_protected": ["exam"]})
    assert variant_identity(first, LOCAL) == variant_identity(second, LOCAL)
    assert plain(first) != plain(second)
