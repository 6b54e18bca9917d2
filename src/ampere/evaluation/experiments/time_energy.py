"""Time against energy of random 5-layer CNNs: may time stand in for energy while profiling?

Where joules are modelled from CPU time, as on a machine without a counter, the answer is built in: the records say
which meter it was, and only a measuring or simulated one shows anything.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ampere.evaluation.catalogue import Record
from ampere.evaluation.comparing import compared
from ampere.evaluation.lab import Lab
from ampere.evaluation.trials_job import needs, trials_of

TITLE = "time against energy of 5-layer CNNs"
FIGURE = "Fig. 6"

jobs = needs(lambda plan: [trials_of(plan, device, "cnn5") for device in plan.all_devices])


def records(lab: Lab) -> Iterator[Record]:
    for device in lab.plan.all_devices:
        comparison = compared(lab, trials_of(lab.plan, device, "cnn5"))
        seconds, joules = np.array([(t.seconds, t.joules) for t in comparison.trials]).T
        correlation = float(np.corrcoef(seconds, joules)[0, 1])
        for trial in comparison.trials:
            yield {
                **comparison.of,
                "network": trial.network,
                "seconds": trial.seconds,
                "joules": trial.joules,
                "correlation": correlation,
            }
