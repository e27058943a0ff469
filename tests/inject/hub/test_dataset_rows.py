import pytest

from inject.errors import InputError
from inject.examples.contaminant import Contaminant, contaminant_identity
from inject.examples.load import load_examples
from tests.inject.examples.datasets.test_datasets import BOOLQ, ROOMS, flat, lsat, lsat_query
from tests.inject.hub.fake_hub import forget_commits


@pytest.fixture
def fake_hub(monkeypatch, tmp_path):
    """A fake hub: `datasets.load_dataset` over rows in memory, commits by name."""
    import datasets
    import huggingface_hub

    shelves = {}

    class Info:
        sha = "c" * 40

    def load_dataset(hub_id, *, name, split, revision, streaming):
        assert revision == Info.sha
        assert not streaming
        return datasets.Dataset.from_list(shelves[hub_id, name, split])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_, **__: Info())
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    forget_commits()
    yield shelves
    forget_commits()


def test_hub_rows_are_read_by_their_usual_ids(fake_hub):
    fake_hub["google/boolq", None, "validation"] = BOOLQ
    fake_hub["stanfordnlp/imdb", None, "test"] = [{"text": t, "label": 0} for t in "abc"]
    fake_hub["truthfulqa/truthful_qa", "generation", "validation"] = [
        {"type": "Adversarial", "category": "c", "question": f"q{n}", "best_answer": "b",
         "correct_answers": ["b", ""], "incorrect_answers": ["w"], "source": "s"}
        for n in range(3)
    ]  # fmt: skip
    fake_hub["tau/commonsense_qa", None, "validation"] = [flat(n) for n in range(3)]
    fake_hub["tau/commonsense_qa", None, "train"] = [flat(n) for n in range(5)]
    for section in ("ar", "lr", "rc"):
        fake_hub[f"dmayhem93/agieval-lsat-{section}", None, "test"] = [
            lsat_query(lsat(f"{section} {row['passage']}", row["question"])) for row in ROOMS
        ]
    for month in ("2019-12", "2020-01"):
        fake_hub["RealTimeData/bbc_news_alltime", month, "train"] = [
            {"title": f"t{month}", "published_date": f"{month}-01", "content": "c", "link": "l"}
        ]
    passage = {"Example_B": "b", "Example_C": "c", "Example_D": "d", "Answer": "A", "Label": 0}
    for hub_id, more in (
        ("avduarte333/arXivTection", ({},)),
        ("avduarte333/BookTection", ({"Length": "medium"}, {"Length": "small"})),
    ):
        fake_hub[hub_id, None, "train"] = [
            {**passage, "Example_A": f"{extra}{n}", "ID": f"d{n}", **extra}
            for extra in more
            for n in "12"
        ]
    for words in (32, 64):
        fake_hub["swj0419/WikiMIA", None, f"WikiMIA_length{words}"] = [
            {"input": f"{words} {n}", "label": n % 2} for n in range(6)
        ]
    fake_hub["RealTimeData/News_August_2023", None, "train"] = [
        {"title": f"t{n}", "date_publish": "2023-08-02 01:00:00", "maintext": f"m{n}"}
        for n in range(3)
    ]

    def load_rows(dataset, **settings):
        contaminant = Contaminant(dataset=dataset, members=1, nonmembers=1, **settings)
        assert set(contaminant_identity(contaminant)["hub"].values()) == {"c" * 40}
        return load_examples(contaminant, seed=0).examples

    assert load_rows("boolq")[0].text.endswith("Answer: yes")
    assert load_rows("boolq")[2].source_id == "boolq:validation row 3"
    assert len(load_rows("imdb")) == 3
    assert load_rows("truthfulqa")[1].fields["correct_answers"] == ["b"]
    assert len(load_rows("commonsenseqa")) == 3
    assert len(load_rows("commonsenseqa", split="train")) == 5
    assert [example.stratum for example in load_rows("lsat")] == ["ar"] * 3 + ["lr"] * 3 + [
        "rc"
    ] * 3
    assert len(load_rows("lsat", options={"sections": ["rc"]})) == 3
    window = {"after": "2019-12-01", "before": "2020-01-31"}
    assert [example.stratum for example in load_rows("news", options=window)] == [
        "2019-12",
        "2020-01",
    ]
    assert [row.paraphrases for row in load_rows("arxivtection")] == [("b", "c", "d")] * 2
    assert [row.group for row in load_rows("booktection")] == ["d1", "d2"]
    assert all("small" in row.text for row in load_rows("booktection", options={"length": "small"}))
    assert [row.text for row in load_rows("wikimia")] == ["64 0", "64 2", "64 4"]
    assert load_rows("wikimia", split="WikiMIA_length32")[0].text == "32 0"
    article = load_rows("news_august_2023")[1]
    assert (article.text, article.fields["date"]) == ("m1", "2023-08-02")
    with pytest.raises(InputError, match=r"options\.after"):
        load_rows("news")
