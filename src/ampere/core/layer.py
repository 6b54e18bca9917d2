"""A layer: one parametric operation and the non-parametric ones that follow it (the paper's grouping).

`kind` and `config` say which function of the channels a layer's cost is; `channels_in` and
`channels_out` say where that function is evaluated.
"""

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple


@dataclass(frozen=True)
class TrailingOp:
    """A non-parametric operation: what it reads and writes, in values, at the layer's own channels."""

    op: str  # one of TRAILING_CLASSES
    values_in: float
    values_out: float
    backward: bool = True
    weight: float = 1.0  # how many values of the class's usual operation each of its values stands for

    def grown(self, read: Any, written: Any = None) -> "TrailingOp":
        """The same operation on so many times the values."""
        written = read if written is None else written
        return TrailingOp(self.op, self.values_in * read, self.values_out * written, self.backward, self.weight)

    def to_json(self) -> List[Any]:
        record = [self.op, self.values_in, self.values_out, self.backward]
        return record if self.weight == 1 else [*record, self.weight]


# elementwise: relu, add | dropout: drawing its mask | pool | reduce: mean, softmax, loss | copy: concat, gather | other
# enlarge: between the values there are, whose backward is several times as expensive as that of pooling
# transcendental: gelu, exp, tanh; a value takes several times as long as with relu
TRAILING_CLASSES = ("elementwise", "dropout", "pool", "reduce", "copy", "other", "enlarge", "transcendental")

KINDS_OF_FORMAT_1 = {"glue": "nonparametric"}


@dataclass(frozen=True, eq=False)
class Layer:
    """A parametric operation of a network with what follows it: its kind, its sizes, and its name for people."""

    kind: str
    config: Mapping[str, Any]
    channels_in: int
    channels_out: int
    trailing: Tuple[TrailingOp, ...] = ()
    name: str = ""  # module path, for people; not part of what the layer is
    trainable: bool = True
    input_grad: bool = True  # whether backward goes on to what is before this layer

    @property
    def backward(self) -> bool:
        return self.trainable or self.input_grad

    @property
    def function(self) -> Tuple[Any, ...]:
        """What stays the same when only channels change: the paper's layer kind."""
        return (self.kind, self._settings, tuple(t.op for t in self.trailing))

    @property
    def _settings(self) -> Tuple[Any, ...]:
        """The config as a tuple; kept, and handed on to the layer's versions with other channels."""
        known: Optional[Tuple[Any, ...]] = self.__dict__.get("_sorted_config")
        if known is None:
            known = tuple(sorted(self.config.items()))
            object.__setattr__(self, "_sorted_config", known)
        return known

    @property
    def identity(self) -> Tuple[Any, ...]:
        """What makes two layers the same; kept, because layers are looked up often."""
        known = self.__dict__.get("_identity")
        if known is None:
            same = (
                self.kind,
                self._settings,
                self.channels_in,
                self.channels_out,
                self.trailing,
                self.trainable,
                self.input_grad,
            )
            known = (hash(same), same)
            object.__setattr__(self, "_identity", known)
        return known

    def __hash__(self) -> int:
        known = self.__dict__.get("_identity") or self.identity
        return int(known[0])

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Layer) and self.identity == other.identity)

    def with_channels(self, channels_in: Any, channels_out: Any) -> "Layer":
        """The same layer elsewhere on its surface; trailing operations grow with the channels they work on."""
        grow = channels_out / self.channels_out if self.channels_out else 1.0
        grown = tuple(t.grown(grow) for t in self.trailing)
        moved = Layer(
            self.kind, self.config, channels_in, channels_out, grown, self.name, self.trainable, self.input_grad
        )
        object.__setattr__(moved, "_sorted_config", self._settings)
        return moved

    def renamed(self, name: str) -> "Layer":
        """The same layer under another name: all that is kept of it stays right."""
        made = object.__new__(Layer)
        made.__dict__.update(self.__dict__, name=name)
        return made

    def to_json(self) -> Dict[str, Any]:
        return {
            "kind": self.kind,
            "config": {k: list(v) if isinstance(v, tuple) else v for k, v in self.config.items()},
            "channels": [self.channels_in, self.channels_out],
            "trailing": [t.to_json() for t in self.trailing],
            "name": self.name,
            "trainable": self.trainable,
            "input_grad": self.input_grad,
        }

    @classmethod
    def from_json(cls, record: Dict[str, Any]) -> "Layer":
        """A layer of this format or of format 1, in which `trailing` was called `tail`."""
        config = {str(k): tuple(v) if isinstance(v, list) else v for k, v in record["config"].items()}
        channels_in, channels_out = record["channels"]
        following = record["trailing"] if "trailing" in record else record["tail"]
        trailing = tuple(
            TrailingOp(str(op), float(a), float(b), bool(g), *map(float, w)) for op, a, b, g, *w in following
        )
        return cls(
            KINDS_OF_FORMAT_1.get(str(record["kind"]), str(record["kind"])),
            config,
            int(channels_in),
            int(channels_out),
            trailing,
            str(record.get("name", "")),
            bool(record["trainable"]),
            bool(record["input_grad"]),
        )
