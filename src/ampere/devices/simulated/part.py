"""What a simulated device is made of: the figures of a real part, in SI units, and what had to be assumed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Counter:
    """How energy is read: seldom, in steps, and with noise."""

    name: str
    scope: str
    update_seconds: float
    resolution_watts: float  # the smallest difference of power that a sample can tell
    noise_watts: float  # standard deviation of one sample
    samples: int = 60  # in a window: so many make its beginning and its end matter little

    @property
    def window_seconds(self) -> float:
        return self.samples * self.update_seconds


@dataclass(frozen=True)
class Cooling:
    """A leaky integrator of heat, and a governor that gives up clock steps when it is too warm."""

    kelvin_per_watt: float
    seconds: float  # time constant
    limit_kelvin: float  # above the surroundings
    clocks: tuple[float, ...] = (1.0, 0.92, 0.84, 0.76, 0.68, 0.6)


@dataclass(frozen=True)
class Ridge:
    """A range of sizes in which the library picks a slower algorithm for small images."""

    rows_at_most: float
    octave: float  # the ridge's middle, in octaves of channels
    width: float
    height: float


@dataclass(frozen=True)
class Part:
    name: str
    title: str
    cores: int
    memory_bytes: float
    # arithmetic
    flops: float  # a second, float32, at full clock
    efficiency: float  # of that, what the library reaches on large products
    tile_out: int  # products are padded to so many output channels ...
    tile_in: int  # ... and so many input channels
    half_rows: float  # rows, outputs and depth of a product at which half of its efficiency is reached
    half_out: float
    half_depth: float
    # memory
    bandwidth: float  # bytes a second
    cache_bytes: float
    cache_bandwidth: float
    # overheads
    launch_seconds: float  # to start one operation
    step_seconds: float  # of a training step, besides its layers
    fuses: bool  # elementwise operations ride along with the product before them
    # energy
    static_watts: float  # drawn all the time while training
    joules_per_flop: float
    joules_per_byte: float
    joules_per_cached_byte: float
    # the world
    counter: Counter
    jitter: float = 0.004  # of a window's time, relative
    drift: float = 0.01  # slow change of speed, relative
    busy_share: float = 0.02  # of the time, something else runs ...
    busy_slowdown: float = 0.05  # ... and takes so much
    busy_watts: float = 0.5
    luck: float = 0.0  # how far the algorithm that is picked for a shape is from the typical one
    cooling: Cooling | None = None
    ridge: Ridge | None = None
