"""What is resident while blocks come and go: never less than what is in use, and what an allocator keeps is counted."""

from random import Random

import pytest

from ampere.core.allocations import MIB, TEMPORARY, Allocation, alive_at, peak, resident_peak


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
