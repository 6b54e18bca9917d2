"""Networks that fit a budget: pruned ones, and the best of a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.core import units
from ampere.core.errors import UsageError
from ampere.core.units import parse_energy
from ampere.estimation.estimator import Estimator, estimator_for
from ampere.estimation.memory import MemoryEstimate
from ampere.models.loading import refuse_flax, refuse_step
from ampere.storage.tables import check_table, write_table

from .memory import StepMemory, bytes_in
from .models import Model, ResolvedModel, resolve
from .options import PROFILE_OBJECTS, AnyProfile, DeviceKeywords, OptionKeywords, Options
from .profiles import ProfiledEstimate, ensure_profile
from .stored_profiles import stored_profile

if TYPE_CHECKING:
    from torch import nn
    from typing_extensions import Unpack

    from ampere.pruning.checking import Check
    from ampere.pruning.result import Pruned
    from ampere.searching.parts import Over
    from ampere.searching.result import Found
    from ampere.searching.spaces import Values
    from ampere.searching.training import Train


MEMORY_TRIES, SMALLER = 6, 0.75  # budgets that are tried for a result that fits into memory, each a part of the last


def prune(
    model: Model,
    inputs: Any = None,
    budget: str | float | None = None,
    profile: AnyProfile | None = None,
    strategy: str = "energy",
    *,
    keep: Sequence[str] = (),
    confidence: float = 0.5,
    iterations: int | None = None,
    battery: str | None = None,
    memory: str | float | None = None,
    short_training: Callable[[nn.Module], float] | None = None,
    calibration: Sequence[Any] = (),
    check: bool | None = None,
    out: Path | str | None = None,
    **options: Unpack[DeviceKeywords],
) -> Pruned:
    """A copy of the model with fewer channels, whose training stays inside a budget; the model itself is not changed.

    `budget` is a share (0.5 or "50%"), joules of an iteration ("5mJ"), of a run of `iterations`, or of a battery.
    `short_training` takes a candidate of the random strategy and returns its loss after a few of your own steps.
    `calibration` are batches of your inputs, on which the energy_aware strategy compares outputs of layers.
    `check` trains original and result on the device for some seconds in turn, to see that the budget holds; by default
    where the device's own profile is used. `memory` is a second budget, such as "4GB": where the result may need more,
    it is pruned further. `out` saves the result as .json or .pt2. The other keywords are those of `estimate`.
    """
    from ampere.pruning.checking import opened_check, why_unchecked
    from ampere.pruning.pruning import prune as prune_model
    from ampere.pruning.saving import check_writable, save

    asked = replace(Options(**options), profile=profile)
    subject = resolve(model, inputs)
    loaded, joules = subject.loaded, parse_energy(battery) if battery else None
    refuse_flax(loaded.model, "pruned")
    refuse_step(loaded, "pruned")
    limit = None if memory is None else bytes_in(memory)
    budget = _checked_budget(budget, loaded.model, iterations, joules, keep)
    if out:
        check_writable(Path(out))
    with asked.opened() as asked, asked.opened_device() as opened:
        known = ensure_profile(subject, asked)
        unmeasured = "as asked for" if check is False else ""
        if check is None and isinstance(profile, PROFILE_OBJECTS):
            unmeasured = "the profile was given: check=True measures"
        unmeasured = unmeasured or ("" if check else why_unchecked(opened, known.profile, known.network))
        at: AbstractContextManager[Check | None] = nullcontext()
        if not unmeasured:
            at = opened_check(loaded, opened, known.profile, asked.allocator, subject.network)
        prune_to = partial(
            prune_model,
            loaded,
            None,
            estimator=known.estimator,
            strategy=strategy,
            keep=keep,
            confidence=confidence,
            iterations=iterations,
            battery_joules=joules,
            allocator=asked.allocator,
            seed=asked.seed,
            short_training=short_training,
            calibration=calibration,
            on_progress=lambda done, total, text: asked.report("pruning", done, total, text),
        )
        if limit is not None:
            budget = _within_memory(prune_to, budget, limit, known)
        with at as checking:
            pruned = prune_to(budget, check=checking)
    if limit is not None:
        pruned = replace(pruned, memory=_memory_of(pruned, known).within(limit))
    written = save(pruned, Path(out)) if out else []
    return replace(pruned, unmeasured=unmeasured, written=tuple(written))


def _within_memory(
    prune_to: Callable[..., Pruned], budget: str | float, limit_bytes: float, known: ProfiledEstimate
) -> str | float:
    """The budget, made smaller until the pruned model fits into memory with its whole interval."""
    from ampere.pruning.budget import part_of

    found = prune_to(budget)  # what is wrong with the user's own budget is said as it is
    for _ in range(MEMORY_TRIES):
        needed = _memory_of(found, known).interval[1]
        if needed <= limit_bytes:
            return budget
        budget = part_of(budget, SMALLER)
        try:
            found = prune_to(budget)
        except UsageError:
            break
    raise UsageError(
        f"the pruned model may still need {units.bytes(needed)} of memory, more than {units.bytes(limit_bytes)}: "
        "give more memory, or a smaller batch"
    )


def _memory_of(pruned: Pruned, known: ProfiledEstimate) -> MemoryEstimate:
    subject = ResolvedModel(pruned.original.name, loaded=replace(pruned.original, model=pruned.model))
    return StepMemory(subject, known.profile.setup, pruned.after.allocator, known.profile).at(None)


def _checked_budget(
    budget: str | float | None, model: nn.Module, iterations: int | None, battery: float | None, keep: Sequence[str]
) -> str | float:
    """Refuses what cannot be pruned before any time is spent on profiling."""
    from ampere.pruning.budget import joules_allowed
    from ampere.pruning.probing import check_layers
    from ampere.pruning.structure import need_torch_pruning

    if budget is None:
        raise UsageError("a budget is missing: give a share or joules, such as budget='50%' or budget='5mJ'")
    joules_allowed(budget, 1.0, iterations, battery)
    check_layers(model, keep)
    need_torch_pruning()
    return budget


def search(
    space: str,
    budget: str | float,
    *profiles: AnyProfile,
    optimizers: Sequence[str] = (),
    train: str | Train | None = None,
    vary: Mapping[str, Values] | None = None,
    batches: Sequence[int] = (),
    candidates: int | None = None,
    trials: int = 12,
    steps: int = 300,
    confidence: float = 0.9,
    iterations: int | None = None,
    battery: str | None = None,
    memory: str | float | None = None,
    input: str | None = None,
    mode: str = "capacity",
    power: float | None = None,
    scheduler: str | None = None,
    table: Path | str | None = None,
    on_trial: Callable[[Found], None] = lambda found: None,
    **options: Unpack[OptionKeywords],
) -> Found:
    """The best networks of a space inside an energy budget: many are compared by their estimates, a few are trained.

    `space` is a family, a general space, or `file.py:function` whose arguments `vary`. Each of the `optimizers` has a
    profile of its own, made where it is missing. `train(model, candidate)` returns an accuracy from 0 to 1; `trials=0`
    trains nothing. `on_trial` is called after each. `power` (watts) and `memory` ("4GB") are further limits. With
    `mode="hyperpower"` what was trained decides what is trained next, and what learns nothing is stopped early. With
    `scheduler`, the address of a running dask scheduler, its workers screen the candidates. `table` is a file
    (.parquet or .csv) for the largest candidates at each cost. The other keywords are those of `estimate`.
    """
    from ampere.fleet.cluster import spread
    from ampere.searching.searching import allowed_joules, space_of
    from ampere.searching.searching import search as search_space
    from ampere.searching.training import of_user

    asked = Options(**options)
    space_of(space, vary or {}, batches, input, asked.seed)  # what makes no sense is refused before profiling
    allowed_joules(budget, 1.0, iterations, parse_energy(battery) if battery else None)
    if table is not None:
        check_table(Path(table))
    limit = None if memory is None else bytes_in(memory)
    run = of_user(train) if isinstance(train, str) and trials else train
    estimators = _by_optimizer(space, input, profiles, optimizers, asked)
    over: Over | None = None if table is None else map
    if scheduler is not None:
        over = partial(spread, scheduler=scheduler, on_notice=asked.say)
    found = search_space(
        space,
        budget,
        *estimators,
        train=run,
        vary=vary,
        batches=batches,
        candidates=candidates,
        trials=trials,
        steps=steps,
        confidence=confidence,
        iterations=iterations,
        battery=battery,
        memory_bytes=limit,
        allocator=asked.allocator,
        input=input,
        seed=asked.seed,
        mode=mode,
        power=power,
        over=over,
        on_progress=lambda done, total, text: asked.report(f"searching {space}", done, total, text),
        on_trial=on_trial,
    )
    if table is not None:
        write_table(found.shortlist, Path(table))
    return found


def _by_optimizer(
    space: str, input: str | None, profiles: Sequence[AnyProfile], optimizers: Sequence[str], options: Options
) -> list[Estimator]:
    """An estimator for each optimizer: of the profiles given, or of the device's own."""
    given = [*profiles, *([options.profile] if options.profile is not None else [])]
    if not given:
        subject = resolve(space, input)
        names = optimizers or (options.optimizer or "sgd",)
        with options.opened() as opened:
            return [ensure_profile(subject, replace(opened, optimizer=name)).estimator for name in names]
    with options.opened() as opened:
        known = [_estimator(one, opened) for one in given]
    there = {estimator.profile.setup.optimizer for estimator in known}
    for name in optimizers:
        if name not in there:
            raise UsageError(
                f"no profile given is of {name}, but of {', '.join(sorted(there))}: leave out --optimizers, "
                f"or make one with `ampere profile --optimizer {name}`"
            )
    return [estimator for estimator in known if estimator.profile.setup.optimizer in (optimizers or there)]


def _estimator(given: AnyProfile, options: Options) -> Estimator:
    if isinstance(given, Estimator):
        return given
    known = stored_profile(replace(options, profile=given, optimizer=None))
    assert known is not None  # a file that is named is there, or refused
    return estimator_for(known, options.watts_per_core)
