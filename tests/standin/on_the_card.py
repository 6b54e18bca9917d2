"""What every runtime keeps to, on the stand-in accelerator. By hand, in a process that has it: see environment.py."""

from ampere.runtimes.conformance import RuntimeConformance
from ampere.runtimes.table import EVERY_KIND, OURS

RECURRENT = frozenset({"lstm", "gru", "rnn"})  # PyTorch takes kernels of cards for these, which the stand-in lacks


class TestOnTheCard(RuntimeConformance):
    name, on = "torch", "standin:0"
    alone = EVERY_KIND - RECURRENT
    test_all_that_it_can_build_trains_in_one_network = None  # it has recurrent layers

    @property
    def description(self):
        return OURS["torch"]._replace(dtypes=("float32", "bfloat16"))
