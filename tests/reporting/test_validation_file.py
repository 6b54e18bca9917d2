"""A validation from elsewhere is believed only where it makes sense."""

import json

import pytest

from ampere.core.errors import ProfileError
from ampere.reporting import Run, make_report, read_validation


def written(tmp_path, record):
    path = tmp_path / "validation.json"
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    return path


def test_methods_and_unseen_networks_are_shown(profile, network, validation, tmp_path):
    report = make_report(profile, [network], [Run()], read_validation(written(tmp_path, validation)))
    charts = {c.key: c for c in report.charts}
    assert [len(one.spots) for one in charts["validation"].plot.series] == [3, 3]
    assert [row[0] for row in charts["methods"].table.rows] == ["Ampere", "FLOPs", "measuring twice"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"rows": []}, "rows"),
        ({"mape": {}}, "method"),
        ({"mape": {"additive": -1.0}}, "additive"),
        ({"mape": {"additive": True}}, "additive"),
        ({"mape": {"other": 0.1}}, "other"),
        ({"meter": {"volts": 3}}, "volts"),
        ({"repeatability_mape": "often"}, "often"),
    ],
)
def test_nonsense_is_refused_in_a_line(validation, tmp_path, change, word):
    with pytest.raises(ProfileError, match=word) as refusal:
        read_validation(written(tmp_path, {**validation, **change}))
    assert "ampere validate" in str(refusal.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense", '{"mape": NaN}'])
def test_other_files_are_refused(tmp_path, text):
    with pytest.raises(ProfileError, match="is not a validation"):
        read_validation(written(tmp_path, text))
