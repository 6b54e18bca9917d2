"""Clocks and logs that change under a meter: joules are read by the clock that is there now, or not at all.

The board is imitated and has no real time: it writes what it draws, row by row, whenever it is asked for something.
"""

import threading
import time

import pytest

from ampere.core import Meter
from ampere.core.errors import MeterError
from ampere.devices.external_meters import bench
from ampere.devices.external_meters.bench import LoggedMeter
from ampere.devices.external_meters.log import LogSpec

EVERY, IDLE, BUSY, BLOCK = 0.01, 2.0, 12.0, 7.0


class Board:
    """log seconds = offset + its own seconds"""

    def __init__(self, path, now=100.0, offset=5000.0, idle=IDLE, every=EVERY):
        self.path, self.now, self.offset, self.idle, self.every = path, now, offset, idle, every
        self.patterns = self.inside = self.most_inside = 0
        self.deaf = False
        self.draw(20 * every, idle)

    def draw(self, seconds, watts):
        rows = []
        for _ in range(max(1, round(seconds / self.every))):
            self.now += self.every
            rows.append(f"{self.offset + self.now:.6f},{self.idle if self.deaf else watts}\n")
        self.write("".join(rows))

    def write(self, text):
        with open(self.path, "a") as file:
            file.write(text)

    def ask(self, request):
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        time.sleep(0.001)
        answer = {"load": self.load, "block": self.block, "yardstick": self.yardstick}[request["do"]](request)
        self.draw(5 * self.every, self.idle)
        self.inside -= 1
        return answer

    def load(self, request):
        self.patterns += len(request["pattern"]) > 1
        began, ends = self.now, []
        for works in request["pattern"]:
            self.draw(request["seconds"], BUSY if works else self.idle)
            ends.append(self.now)
        return {"began": began, "ends": ends}

    def block(self, request):
        return {"target": [self.window(1.0, BLOCK)], "yardstick": []}

    def yardstick(self, request):
        began = self.now
        self.draw(1.0, self.idle)
        rest = began, self.now
        return {"busy_seconds": 0.5, "windows": [self.window(1.0, BLOCK)], "rest": rest}

    def window(self, seconds, watts):
        """Two steps that keep the processor busy all the time."""
        began = self.now
        self.draw(seconds, watts)
        return [2, seconds, seconds, None, 0, began]


@pytest.fixture(name="board")
def a_board(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "LEAST_PART_SECONDS", 0.05)
    monkeypatch.setattr(bench, "PATIENCE_SECONDS", 0.3)
    return Board(tmp_path / "bench.csv")


@pytest.fixture(name="meter")
def its_meter(board):
    return LoggedMeter.of(LogSpec.parse(f"log:{board.path},time=1,power=2"))


def joules(meter, board):
    """Of one of its two steps."""
    [[steps, _, _, read, _]] = meter.around({"do": "block"}, board.ask)["target"]
    return read / steps


def a_log_that_goes_back(board):
    board.offset -= 50.0


def a_log_whose_clock_is_set(board):
    board.offset += 1.7e9


def a_log_that_steps_ahead(board):
    """By little enough that windows would be looked for among rows that are there."""
    board.offset += 3.0
    board.draw(6.0, IDLE)


def a_board_that_was_started_again(board):
    board.offset, board.now = board.offset + board.now, 3.0


def a_line_that_is_damaged(board):
    board.write("oops\n")


CHANGES = [
    a_log_that_goes_back,
    a_log_that_steps_ahead,
    a_log_whose_clock_is_set,
    a_board_that_was_started_again,
    a_line_that_is_damaged,
]


@pytest.mark.parametrize("change", CHANGES)
def test_joules_are_right_whatever_changes(board, meter, change):
    assert joules(meter, board) == pytest.approx(BLOCK * 0.5, rel=0.02)
    change(board)
    assert joules(meter, board) == pytest.approx(BLOCK * 0.5, rel=0.02)
    assert board.patterns == (1 if change is a_line_that_is_damaged else 2)


def test_another_device_on_the_same_meter_has_another_clock(board, meter):
    joules(meter, board)
    meter.released()
    board.offset, board.now = board.offset - 40.0, board.now + 40.0
    assert joules(meter, board) == pytest.approx(BLOCK * 0.5, rel=0.02)
    assert board.patterns == 2


def test_a_pattern_that_is_not_seen_once_is_given_again(board, meter):
    joules(meter, board)
    board.draw(bench.ALIGNED_FOR_SECONDS, IDLE)
    board.deaf, load = True, board.load

    def deaf_once(request):
        answer = load(request)
        board.deaf = board.deaf and len(request["pattern"]) == 1  # until a pattern was given
        return answer

    board.load = deaf_once
    assert joules(meter, board) == pytest.approx(BLOCK * 0.5, rel=0.02)
    assert board.patterns == 3


def test_one_that_was_never_seen_is_refused_at_once(board, meter):
    board.deaf = True
    with pytest.raises(MeterError, match="does not show in"):
        joules(meter, board)
    assert board.patterns == 1


def test_nothing_at_rest_is_a_reading(tmp_path, board):
    board = Board(tmp_path / "exact.csv", idle=0.0)
    meter = LoggedMeter.of(LogSpec.parse(f"log:{board.path},time=1,power=2"))
    answer = meter.around({"do": "yardstick"}, board.ask)
    assert answer["watts_idle"] == 0.0
    assert answer["joules"] == pytest.approx(BLOCK * 0.5, rel=0.02)


def test_workers_of_one_device_take_turns(board, meter):
    asking = [threading.Thread(target=joules, args=(meter, board)) for _ in range(3)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert board.most_inside == 1
    assert joules(meter, board) == pytest.approx(BLOCK * 0.5, rel=0.02)


def test_an_older_recording_in_the_same_file_is_passed_over(board):
    a_log_that_goes_back(board)
    board.draw(1.0, IDLE)
    meter = LoggedMeter.of(LogSpec.parse(f"log:{board.path},time=1,power=2"))
    assert meter.interval == pytest.approx(EVERY)
    assert joules(meter, board) == pytest.approx(BLOCK * 0.5, rel=0.02)


def test_a_run_goes_on_with_another_file_of_the_same_meter(tmp_path, board, meter):
    again = Board(tmp_path / "again.csv", every=0.011)
    other = LoggedMeter.of(LogSpec.parse(f"log:{again.path},time=1,power=2"))
    before, now = Meter(**meter.describe()), Meter(**other.describe())
    assert before.scope != now.scope
    assert now.counts_as(before)
    assert not now.counts_as(Meter("log", True, "the board's rail, bench.csv"))
