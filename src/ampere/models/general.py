"""The general spaces: any CNN, any transformer, any recurrent network whose step takes about 0.3 to 60 ms."""

from .cnn_sampling import CNN, sample_cnn
from .families import FAMILIES
from .sequence_sampling import RECURRENT, TRANSFORMERS, sample_recurrent, sample_transformers
from .space import Space

GENERAL: dict[str, Space] = {
    space.name: space
    for space in (
        Space("cnn", "any CNN", "ampere.models.cnn:build", CNN, sample_cnn),
        Space("transformers", "any transformer", "ampere.models.transformers:build", TRANSFORMERS, sample_transformers),
        Space("recurrent", "any recurrent network", "ampere.models.recurrent:build", RECURRENT, sample_recurrent),
    )
}

SPACES: dict[str, Space] = {**FAMILIES, **GENERAL}
