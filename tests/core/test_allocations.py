"""What is resident while blocks come and go: never less than what is in use, and what an allocator keeps is counted."""

from random import Random

import pytest

from ampere.core.allocations import MIB, PAGE, TEMPORARY, Allocation, alive_at, fresh_pages, peak, resident_peak


def block(size: int, begins: int, ends: int | None) -> Allocation:
    return Allocation(size, TEMPORARY, "", begins, ends)


def test_blocks_that_do_not_overlap_take_no_more_than_the_largest():
    blocks = [block(8 * MIB, 1, 2), block(8 * MIB, 3, 4), block(4 * MIB, 5, 6)]
    assert peak(blocks) == (8 * MIB, 1)


def test_what_lives_on_is_alive_at_the_end():
    blocks = [block(10, 1, None), block(20, 2, 3)]
    assert peak(blocks) == (30, 2)
    assert [each.bytes for each in alive_at(blocks, 3)] == [10]


def test_own_pages_are_given_back_and_the_heap_is_kept():
    large = [block(64 * MIB, 1, 2), block(64 * MIB, 3, 4)]
    assert resident_peak(large) == pytest.approx(64 * MIB, rel=0.01)
    # The first free raises the threshold to 8 MiB: later blocks come from the heap, where one below the top stays.
    small = [block(8 * MIB, 1, 2), block(8 * MIB, 3, 5), block(4 * MIB, 4, None), block(9 * MIB, 6, None)]
    assert peak(small)[0] == 13 * MIB
    assert resident_peak(small) > 20 * MIB


@pytest.mark.parametrize("keeps_all", [False, True])
def test_resident_memory_is_never_less_than_what_is_in_use(keeps_all):
    random = Random(1)
    times = random.sample(range(10_000), 600)
    blocks = [block(random.randint(1, 3 * MIB), *sorted(times[i : i + 2])) for i in range(0, 600, 2)]
    live, resident = peak(blocks)[0], resident_peak(blocks, keeps_all)
    assert live <= resident < 3 * live


def loop(*blocks: tuple[int, int, int]) -> list[Allocation]:
    """Three steps of ten ticks that take the same blocks: size, when it is taken, when it is given back."""
    return [
        Allocation(size, TEMPORARY, "", 10 * step + begins, 10 * step + ends, step)
        for step in (1, 2, 3)
        for size, begins, ends in blocks
    ]


def test_a_loop_faults_where_more_memory_is_given_back_at_once_than_the_allocator_keeps():
    # Freed from the top down, all of it is given back; freed one by one while the next lives, holes are filled again.
    together = loop(*((12 * MIB, i, 9 - i) for i in range(4)))
    certain, by_lot = fresh_pages(together)
    assert (certain, by_lot * PAGE) == (0, pytest.approx(48 * MIB, rel=0.3))
    nothing = (0, 0)
    assert fresh_pages(together, keeps_all=True) == nothing
    assert fresh_pages(loop((16 * 1024, 1, 3), (16 * 1024, 2, 4))) == nothing
    assert fresh_pages([block(48 * MIB, 1, 2)]) == nothing  # no steps, nothing that is repeated


def test_blocks_beyond_all_thresholds_fault_in_every_step():
    certain, by_lot = fresh_pages(loop((64 * MIB, 1, 5), (40 * MIB, 2, 4)))
    assert certain * PAGE == pytest.approx(104 * MIB, rel=0.01)
    assert by_lot < 0.01 * certain
