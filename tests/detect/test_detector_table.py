from detect.detector_table import detector_table
from detect.registry import detector_names


def test_the_table_lists_every_detector_with_its_paper():
    rows = detector_table().rows
    assert [row.name for row in rows] == list(detector_names())
    assert all(row.summary and row.source and row.needs for row in rows)
    assert next(row for row in rows if row.name == "surp").parameters.startswith("entropy=2.0:k=40")
