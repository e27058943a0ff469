from detect.registry import get_detector


def test_aliases():
    names = ["ppl", "min-k", "MinK++", "Min-K%++", "dc-pdd", "DC_PDD", "ref"]
    expected = ["loss", "min_k", "min_k_plus_plus", "min_k_plus_plus", "dc_pdd", "dc_pdd"]
    assert [get_detector(name).detector.name for name in names] == [*expected, "reference"]
