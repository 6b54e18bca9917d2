"""What a report says: all of it, in the order in which people ask, with its origin, and nothing that is not so."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from tests.synthetic import conv, linear

from ampere.core import Meter, Network, units
from ampere.core.errors import UsageError
from ampere.estimation.estimate import LayerShare
from ampere.estimation.estimator import Estimator
from ampere.reporting import Run, make_report, save_page, write_report
from ampere.reporting.charts import Histogram, Scatter
from ampere.reporting.layer_charts import kind_colours, kinds_chart
from ampere.reporting.model_section import _warning, where_it_goes
from ampere.reporting.page import html
from ampere.reporting.plotting import save_chart


def keys(report):
    return [section.key for section in report.sections]


def chart(report, key):
    return next(c for c in report.charts if c.key == key)


def frozen(page):
    """The data that a page holds."""
    return json.loads(re.search(r'<script type="application/json" id="report">(.*)</script>', page)[1])


def test_sections_come_in_the_order_in_which_people_ask(report):
    assert keys(report) == ["model-1", "surfaces", "accuracy", "cost", "flags"]


def test_without_a_model_it_speaks_of_the_device(profile):
    report = make_report(profile, [], [])
    assert keys(report) == ["surfaces", "accuracy", "cost", "flags"]
    assert "Testing &lt;CPU&gt;" in html(report)


def test_every_caption_says_where_joules_come_from(report):
    assert report.origin == "modelled"
    assert all("Modelled joules (cpu-time, 5 W per busy core)" in c.caption for c in report.charts)


def test_measured_joules_are_called_measured(profile, network):
    measured = replace(profile, meter=Meter("rapl", True, "package"))
    report = make_report(measured, [network], [Run()])
    assert report.origin == "measured"
    assert "modelled" not in html(report).lower()


def test_simulated_joules_are_called_simulated_everywhere(profile, network):
    meter = Meter("simulated gauge", True, "the whole phone", simulated=True)
    observations = tuple(replace(o, measurement=replace(o.measurement, meter=meter)) for o in profile.observations)
    report = make_report(replace(profile, meter=meter, observations=observations), [network], [Run()])
    assert report.origin == "simulated"
    assert all("Simulated joules" in c.caption for c in report.charts)
    assert "simulated, not measured on any device" in dict(report.facts)["joules"]


def test_joules_from_a_recording_are_called_replayed(profile):
    report = make_report(replace(profile, meter=replace(profile.meter, replayed=True)), [], [])
    assert report.origin == "replayed modelled"
    assert dict(report.facts)["joules"].startswith("replayed from a recording")


def data(plot):
    """What a chart shows, one by one."""
    if isinstance(plot, Histogram):
        return [count for count in plot.counts if count]
    if isinstance(plot, Scatter):
        return [spot for one in plot.series for spot in one.spots]
    return next(getattr(plot, name) for name in ("bars", "shares", "seen") if hasattr(plot, name))


def test_every_chart_shows_every_row_of_its_table(report):
    for c in report.charts:
        assert len(data(c.plot)) == len(c.table.rows) > 0, c.key


def test_layers_of_the_table_sum_to_the_total(profile, network, report):
    estimate = Estimator(profile).estimate(network)
    shares = [float(row[4].removesuffix(" %")) for row in chart(report, "model-1-layers").table.rows]
    assert sum(shares) == pytest.approx(100, abs=2)
    assert report.sections[0].figures[0][0] == units.joules(estimate.joules)
    assert len(shares) == len(estimate.layers)


def test_a_long_network_shows_its_most_expensive_layers_and_the_others_as_one(profile):
    long = Network(tuple(replace(conv(8, 8 + i), name=f"c{i}") for i in range(40)), 10, "long")
    report = make_report(profile, [long], [Run()])
    bars = chart(report, "model-1-layers")
    assert len(bars.plot.bars) == 22
    assert len(bars.table.rows) == 41


def test_layers_that_were_never_measured_are_named_and_pale(profile):
    strange = Network(
        (
            replace(
                conv(8, 8), kind="conv_transposed", config={**conv(8, 8).config, "output_padding": (0, 0)}, name="up"
            ),
            linear(8, 8),
        ),
        10,
        "s",
    )
    report = make_report(profile, [strange], [Run()])
    assert "not profiled" in dict(report.sections[0].facts)
    assert [bar.name for bar in chart(report, "model-1-layers").plot.bars if bar.hollow] == ["up"]


def test_the_run_and_the_battery_are_shown(report):
    (one, _), (whole, words), (share, of) = report.sections[0].figures
    assert one.endswith("mJ")
    assert "10,000 iterations" in words
    assert whole.split()[1] in ("J", "kJ")
    assert share.endswith("%")
    assert "15Wh" in of


def test_it_says_in_words_where_the_energy_goes(profile, network):
    assert re.match(r"\d of 4 layers takes? \d+ % of the energy: ", where_it_goes(Estimator(profile).estimate(network)))


def test_flags_are_counted_and_explained(report):
    flags = report.sections[-1]
    assert "3 of 87" in flags.words[0]
    assert {row[0]: row[1] for row in flags.table.rows} == {"noisy": "3", "loaded": "3"}


def test_names_stay_names(report):
    page = html(report)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert re.findall("<script[^>]*>", page) == [
        '<script type="application/json" id="report">',
        '<script type="module">',
    ]


def test_the_page_asks_nobody_for_anything(report):
    page = html(report)
    assert "default-src 'none'" in page
    assert not re.findall(r"<[^>]*(?:src|href)=\"(?!data:,)", page)
    assert not re.search(r"^(import|export) ", page, re.MULTILINE)  # modules of the page are one script
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert len(page) < 500_000


def test_several_models_are_compared_first(profile, network):
    report = make_report(profile, [network, network.renamed("twin")], [Run(), Run()])
    assert keys(report)[:3] == ["models", "model-1", "model-2"]
    assert [row[0] for row in chart(report, "models-iteration").table.rows] == ["tidy", "twin"]


@pytest.mark.parametrize("name", ["\x00\x0b", "\ud800", "x" * 50_000, "\u202e&amp;<!--", "]]>"])
def test_no_name_breaks_the_page_or_a_picture(profile, name, tmp_path):
    named = Network((replace(conv(8, 8), name=name),), 10, name)
    report = make_report(profile, [named], [Run()])
    [page] = save_page(report, tmp_path / "page.html")
    assert page.stat().st_size < 500_000
    save_chart(chart(report, "model-1-layers"), tmp_path / "layers.svg")
    ElementTree.parse(tmp_path / "layers.svg")


def test_a_network_of_a_thousand_layers_stays_a_page(profile):
    deep = Network(tuple(replace(conv(8, 8 + i % 50), name=f"block.{i}") for i in range(1000)), 10, "deep")
    page = html(make_report(profile, [deep], [Run()]))
    assert '"more":601' in page
    assert len(page) < 500_000


@pytest.mark.parametrize("kept", [1, 2, 5])
def test_a_profile_that_knows_little_makes_a_report_too(profile, network, kept):
    little = replace(profile, observations=profile.observations[:kept])
    assert "Where the energy of tidy goes" in html(make_report(little, [network], [Run()]))


def test_modelled_joules_can_be_shown_at_other_watts(profile, network):
    five, ten = (make_report(profile, [network], [Run()], watts_per_core=watts) for watts in (None, 10.0))
    [(once, _)], [(twice, _)] = five.sections[0].figures, ten.sections[0].figures
    assert float(twice.split()[0]) == pytest.approx(2 * float(once.split()[0]), rel=0.01)
    left, doubled = (chart(r, "left-out").table.rows[0][3] for r in (five, ten))
    assert left == doubled  # the error does not change with the scale


def test_models_are_compared_as_a_pair_and_not_by_their_whiskers(profile, network):
    larger = Network((*network.layers, conv(16, 48)), network.batch, "larger")
    report = make_report(profile, [network, larger], [Run(), Run()])
    assert keys(report)[0] == "models"
    [sentence] = report.sections[0].bases[0].words
    assert sentence.startswith("larger costs 1.")
    assert "it is more expensive" in sentence


def test_models_are_compared_on_one_basis_that_is_named(profile, network):
    twice = Network(network.layers, 2 * network.batch, "twice")
    first, other = make_report(profile, [network, twice]).sections[0].bases
    assert (first.key, other.key) == ("sample", "iteration")  # batches differ: an iteration is not the same work
    assert first.words[0].startswith("twice costs 0.50 of tidy per sample")
    assert other.words[0].startswith("twice costs 1.00 times tidy per iteration")
    for basis, share in ((first, 0.5), (other, 1.0)):
        [drawn] = basis.charts
        assert f"per {basis.key}" in drawn.title
        one, two = drawn.plot.bars
        assert two.value / one.value == pytest.approx(share)
    same, _ = make_report(profile, [network, network.renamed("twin")]).sections[0].bases
    assert same.key == "iteration"


def test_the_setup_is_in_the_first_lines_and_in_the_json(profile, network):
    report = make_report(profile, [network, Network(network.layers, 20, "twice")])
    name, words = report.facts[0]
    assert (name, words) == ("training", "torch, sgd, float32, 1 thread, batch 10 (tidy), batch 20 (twice)")
    assert frozen(html(report))["facts"][0] == [name, words]
    record = report.to_json()
    assert record["setup"] == {**profile.setup.to_json(), "batch": {"tidy": 10, "twice": 20}}
    assert [model["network"] for model in record["models"]] == ["tidy", "twice"]


def encoder(count):
    """Equal blocks of two layers between a stem and a head."""
    parts = [replace(conv(8, 8), name="attention"), replace(conv(8, 24), name="feed_forward")]
    blocks = [replace(part, name=f"encoder.layers.{i}.{part.name}") for i in range(count) for part in parts]
    return Network((replace(conv(3, 8), name="stem"), *blocks, replace(linear(8, 8), name="head")), 10, "encoder")


def test_equal_blocks_are_one_bar_and_can_be_opened(profile):
    report = make_report(profile, [encoder(12)])
    blocks = chart(report, "model-1-layers")
    assert [bar.name for bar in blocks.plot.bars] == ["stem", "encoder.layers.0-11", "head", "step overhead"]
    assert "12 × 2 layers" in blocks.plot.bars[1].detail  # noqa: RUF001
    assert report.sections[0].words[0].startswith("1 of 3 blocks takes")
    inside, every = blocks.inside
    assert [bar.name for bar in inside.plot.bars] == ["attention", "feed_forward"]
    assert len(every.table.rows) == 27
    assert inside.title == "Inside encoder.layers.0-11 (each of 12 equal blocks)"


@pytest.mark.parametrize(("group_by", "bars"), [("block", 4), ("layer", 9), (None, 9)])
def test_layers_are_grouped_as_asked(profile, group_by, bars):
    report = make_report(profile, [encoder(3)], group_by=group_by)
    assert len(chart(report, "model-1-layers").plot.bars) == bars


def test_shares_are_never_negative_and_sum_to_all(report):
    for key in ("model-1-uncertainty", "model-1-kinds"):
        plot = chart(report, key).plot
        shares = [bar.value for bar in plot.bars] if key.endswith("y") else [share.share for share in plot.shares]
        assert min(shares) >= 0
        assert sum(shares) == pytest.approx(1)


def test_a_part_that_balances_others_counts_as_nothing_and_that_is_said(profile, network, monkeypatch):
    from ampere.reporting import model_section

    parts = [("stem", 0.6), ("head", -0.01), ("noise", 0.41)]
    monkeypatch.setattr(model_section, "_variance_parts", lambda *_: parts)
    drawn = chart(make_report(profile, [network]), "model-1-uncertainty")
    assert [bar.label for bar in drawn.plot.bars] == ["59 %", "0 %", "41 %"]
    assert "Parts that balance others count as 0" in drawn.caption


def test_kinds_without_a_colour_of_their_own_are_one_grey_share(profile):
    kinds = ["conv", "linear", "conv_grouped", "norm_batch", "embedding", "scale", "lstm", "gru"]
    shares = [LayerShare(kind, kind, 10.0 - i, 0.1) for i, kind in enumerate(kinds)]
    total = sum(share.joules for share in shares) + 1.0
    estimate = Estimator(profile).estimate(encoder(1))
    estimate = replace(estimate, joules=total, layers=(*shares, LayerShare("(step)", "step", 1.0, 0.0)))
    colours = [share.colour for share in kinds_chart("k", estimate, kind_colours([estimate])).plot.shares]
    assert len(set(colours)) == len(colours) == 8
    assert colours.count("rest") == 1


def test_a_wide_interval_is_called_so(profile, network):
    rough = replace(Estimator(profile).estimate(network), stddev=1.0)
    assert "rough figure" in " ".join(_warning(rough))


def test_a_report_is_written_in_one_call(profile, network, tmp_path):
    page = write_report(profile, [network], tmp_path / "r.html")
    assert page.to_json()["bytes"] == (tmp_path / "r.html").stat().st_size
    assert page.to_json()["setup"]["optimizer"] == "sgd"
    with pytest.raises(UsageError, match="is a folder"):
        write_report(profile, [network], tmp_path)


def test_further_profiles_are_devices_side_by_side(profile, network):
    gauge = Meter("simulated gauge", True, "the whole phone", simulated=True)
    phone = replace(profile, device={"id": "phone", "name": "a phone"}, meter=gauge)
    report = make_report(profile, [network], [Run()], others=[phone, profile])
    assert keys(report)[:2] == ["devices", "model-1"]
    [drawn] = report.sections[0].charts
    assert [row[0] for row in drawn.table.rows] == [
        "Testing <CPU> (1)",
        "a phone",
        "Testing <CPU> (2)",
    ]
    assert [row[-1] for row in drawn.table.rows][:2] == ["modelled, cpu-time", "simulated, simulated gauge"]
    assert "Simulated joules" in drawn.caption
    assert "Modelled joules" in drawn.caption
    assert any("different meters" in words for words in report.sections[0].words)


def test_the_papers_method_says_what_it_lacks(profile, network):
    report = make_report(replace(profile, method="sequential"), [network], [Run()])
    assert "where the uncertainty comes from" in dict(report.facts)["not shown"]
    assert "model-1-uncertainty" not in [c.key for c in report.charts]


def test_a_profile_that_knows_no_layers_says_so_and_shows_the_rest(profile):
    stages = tuple(replace(o, purpose="stage", stage="forward") for o in profile.observations)
    report = make_report(replace(profile, method="stages", observations=stages), [], [])
    assert keys(report) == ["totals", "cost", "flags"]
    assert "stages of single layers" in report.sections[0].words[0]
    with pytest.raises(UsageError, match="leave out the other profiles"):
        make_report(replace(profile, method="stages", observations=stages), [], [], others=[profile])
