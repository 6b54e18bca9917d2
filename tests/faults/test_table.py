"""The page of faults lists every row with exactly the tests that are marked with it."""

from tests.faults.table import PAGE, ROWS, listed, marked


def test_every_row_has_a_marked_test_and_the_page_lists_exactly_those():
    tests = {row: [str(test) for test in found] for row, found in marked().items()}
    assert [row for row in ROWS if not tests[row]] == [], "rows without a test marked pytest.mark.fault(row)"
    assert listed(PAGE.read_text(encoding="utf-8")) == tests, "python tests/faults/table.py writes the page anew"
