"""The figures of simulated devices, in SI units, and the five devices of the paper.

docs/explanation/simulated-devices.md says where each figure comes from, and what had to be assumed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Counter:
    """How energy is read: at intervals, in steps, and with noise."""

    name: str
    scope: str
    update_seconds: float
    resolution_watts: float  # the smallest difference of power that a sample can show
    noise_watts: float  # standard deviation of one sample
    samples: int = 60  # in a window: enough that its two ends matter little
    seen: float = 1.0  # the part of the time in which it looks at the power ...
    looks: int = 1  # ... in so many looks, of which an update is the mean

    @property
    def window_seconds(self) -> float:
        return self.samples * self.update_seconds


@dataclass(frozen=True)
class Cooling:
    """A leaky integrator of heat, and a governor that lowers the clock when the device is too warm."""

    kelvin_per_watt: float
    seconds: float  # time constant
    limit_kelvin: float  # above ambient temperature
    clocks: tuple[float, ...] = (1.0, 0.92, 0.84, 0.76, 0.68, 0.6)


@dataclass(frozen=True)
class Ramp:
    """The clock of a card that was idle, and how long it works until the clock is up."""

    clock: float
    seconds: float


@dataclass(frozen=True)
class Ridge:
    """A range of sizes in which the library picks a slower algorithm for small images."""

    rows_at_most: float
    octave: float  # the ridge's middle, in octaves of channels
    width: float
    height: float


@dataclass(frozen=True)
class Part:
    """Everything that decides what training costs on a simulated device."""

    name: str
    title: str
    cores: int
    memory_bytes: float
    # arithmetic
    flops: float  # a second, float32, at full clock
    efficiency: float  # the share of it that the library reaches on large products
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
    step_seconds: float  # of a training step, in addition to its layers
    fuses: bool  # elementwise operations are fused with the product before them
    # energy
    static_watts: float  # drawn all the time while training, with one thread
    joules_per_flop: float
    joules_per_byte: float
    joules_per_cached_byte: float
    # noise and disturbances
    counter: Counter
    jitter: float = 0.004  # of a window's time, relative
    drift: float = 0.01  # slow change of speed, relative
    busy_share: float = 0.02  # share of the time in which something else runs ...
    busy_slowdown: float = 0.05  # ... and slows training by this share
    busy_watts: float = 0.5
    luck: float = 0.0  # how far the algorithm chosen for a shape is from the typical one
    queued: float = 0.0  # share of what could hide of launches behind longer operations that really does
    ripple: float = 0.0  # how far power swings around its mean in the course of a step
    cooling: Cooling | None = None
    ramp: Ramp | None = None
    ridge: Ridge | None = None
    # threads: a part whose work they do not divide trains on an accelerator, or is described with all of its cores
    threads: int = 1  # that a training loop uses where nobody says otherwise
    divided: float = 0.0  # share of the arithmetic and of the cache's traffic that threads divide
    memory_threads: float = 1.0  # threads that the memory can feed
    thread_watts: float = 0.0  # of each further thread, which works or spins
    spinning: float = 0.95  # share of a step that a further thread is busy, whether it works or spins
    busy_noise: float = 0.11  # of a window's busy time with several threads, relative
    wall_noise: float = 0.013  # of its wall time


GIGA, TERA, MIBI, PICO, MICRO = 1e9, 1e12, 2.0**20, 1e-12, 1e-6
SEEN_BY_INA3221 = 1 / 6  # one converter for the currents and voltages of three rails

XAVIER = Part(
    name="xavier",
    title="Jetson AGX Xavier",
    cores=8,
    memory_bytes=32e9,
    flops=1.41 * TERA,
    efficiency=0.75,
    tile_out=32,
    tile_in=8,
    half_rows=600,
    half_out=12,
    half_depth=40,
    bandwidth=137 * GIGA,
    cache_bytes=0.5 * MIBI,
    cache_bandwidth=400 * GIGA,
    launch_seconds=25 * MICRO,
    step_seconds=400 * MICRO,
    fuses=False,
    queued=0.5,
    static_watts=8.0,
    joules_per_flop=11 * PICO,
    joules_per_byte=60 * PICO,
    joules_per_cached_byte=12 * PICO,
    counter=Counter(
        "simulated INA3221", "module input, 5 mOhm shunts", 0.02, 0.04, 0.15, seen=SEEN_BY_INA3221, looks=3
    ),
    ripple=0.2,
    ridge=Ridge(rows_at_most=600, octave=5.5, width=0.8, height=0.2),
)

TX2 = Part(
    name="tx2",
    title="Jetson TX2",
    cores=6,
    memory_bytes=8e9,
    flops=0.665 * TERA,
    efficiency=0.75,
    tile_out=32,
    tile_in=8,
    half_rows=300,
    half_out=12,
    half_depth=40,
    bandwidth=59.7 * GIGA,
    cache_bytes=0.5 * MIBI,
    cache_bandwidth=200 * GIGA,
    launch_seconds=35 * MICRO,
    step_seconds=600 * MICRO,
    fuses=False,
    queued=0.5,
    static_watts=4.0,
    joules_per_flop=14 * PICO,
    joules_per_byte=75 * PICO,
    joules_per_cached_byte=15 * PICO,
    counter=Counter(
        "simulated INA3221", "module input, 10 mOhm shunts", 0.02, 0.02, 0.1, seen=SEEN_BY_INA3221, looks=3
    ),
    ripple=0.2,
    ridge=Ridge(rows_at_most=600, octave=5.5, width=0.8, height=0.1),
)

ANDROID = Part(
    name="phone-android",
    title="phone with Snapdragon 865",
    cores=8,
    memory_bytes=4e9,
    flops=161 * GIGA,
    efficiency=0.65,
    tile_out=4,
    tile_in=4,
    half_rows=20,
    half_out=6,
    half_depth=16,
    bandwidth=33.4 * GIGA,
    cache_bytes=4 * MIBI,
    cache_bandwidth=120 * GIGA,
    launch_seconds=12 * MICRO,
    step_seconds=300 * MICRO,
    fuses=True,
    static_watts=1.1,
    joules_per_flop=38 * PICO,
    joules_per_byte=90 * PICO,
    joules_per_cached_byte=15 * PICO,
    counter=Counter("simulated battery gauge", "the whole phone, screen off", 0.1758, 0.0006, 0.06),
    jitter=0.01,
    drift=0.02,
    busy_share=0.08,
    busy_slowdown=0.12,
    busy_watts=0.4,
    cooling=Cooling(kelvin_per_watt=6.0, seconds=120.0, limit_kelvin=20.0),
)

IOS = Part(
    name="phone-ios",
    title="iPhone with A14",
    cores=6,
    memory_bytes=2e9,
    flops=192 * GIGA,
    efficiency=0.7,
    tile_out=4,
    tile_in=4,
    half_rows=16,
    half_out=8,
    half_depth=24,
    bandwidth=34.1 * GIGA,
    cache_bytes=16 * MIBI,
    cache_bandwidth=150 * GIGA,
    launch_seconds=8 * MICRO,
    step_seconds=200 * MICRO,
    fuses=True,
    static_watts=0.9,
    joules_per_flop=30 * PICO,
    joules_per_byte=80 * PICO,
    joules_per_cached_byte=12 * PICO,
    counter=Counter("simulated battery gauge", "the whole phone, screen off", 0.1758, 0.004, 0.08),
    jitter=0.008,
    drift=0.015,
    busy_share=0.05,
    busy_slowdown=0.1,
    busy_watts=0.4,
    cooling=Cooling(kelvin_per_watt=6.5, seconds=90.0, limit_kelvin=20.0, clocks=(1.0, 0.9, 0.8, 0.7, 0.6)),
)

SERVER = Part(
    name="server",
    title="server with Tesla V100",
    cores=16,
    memory_bytes=16e9,
    flops=14 * TERA,
    efficiency=0.8,
    tile_out=32,
    tile_in=8,
    half_rows=4000,
    half_out=24,
    half_depth=100,
    bandwidth=900 * GIGA,
    cache_bytes=6 * MIBI,
    cache_bandwidth=2500 * GIGA,
    launch_seconds=7 * MICRO,
    step_seconds=150 * MICRO,
    fuses=False,
    queued=0.5,
    static_watts=55.0,
    joules_per_flop=12 * PICO,
    joules_per_byte=45 * PICO,
    joules_per_cached_byte=10 * PICO,
    counter=Counter("simulated NVML", "the graphics card, without its host", 0.02, 0.001, 2.0, seen=0.5),
    jitter=0.006,
    busy_share=0.03,
    busy_watts=5.0,
    luck=0.06,
    ripple=0.2,
    ramp=Ramp(clock=0.5, seconds=1.0),
)

DESKTOP = Part(
    name="desktop",
    title="desktop with 8 cores",
    cores=8,
    memory_bytes=32e9,
    flops=100 * GIGA,
    efficiency=0.75,
    tile_out=16,
    tile_in=4,
    half_rows=16,
    half_out=8,
    half_depth=24,
    bandwidth=15 * GIGA,
    cache_bytes=16 * MIBI,
    cache_bandwidth=60 * GIGA,
    launch_seconds=8 * MICRO,
    step_seconds=150 * MICRO,
    fuses=False,
    static_watts=18.0,
    joules_per_flop=100 * PICO,
    joules_per_byte=60 * PICO,
    joules_per_cached_byte=8 * PICO,
    counter=Counter("simulated RAPL", "the processor's package", 0.001, 0.06, 0.3),
    threads=8,
    divided=0.95,
    memory_threads=2.7,
    thread_watts=6.0,
)

PARTS = {part.name: part for part in (XAVIER, TX2, ANDROID, IOS, SERVER, DESKTOP)}
