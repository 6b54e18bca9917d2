"""What a run's measurements stand for: what its journal says already, or what is here now."""

from __future__ import annotations

from ampere.devices.logs import asked_as
from ampere.errors import ProfileError
from ampere.profiles.journal import Journal
from ampere.profiles.profile import Profile, check_device
from ampere.profiles.recording import Header, header_from, record_header, record_observation


def header_for(journal: Journal, old: Profile | None, fresh: Header, foreign: bool) -> Header:
    """What the journal already stands for; a new one begins with what is here now."""
    known = header_from(journal)
    if known is None and old is not None:
        known = Header.of(old)
        record_header(journal, known)
        for observation in (*old.observations, *old.runs):
            record_observation(journal, observation, old.profiling_seconds)
    if known is None:
        record_header(journal, fresh)
        return fresh
    check_device(known, fresh.device, foreign)
    if known.setup != fresh.setup:
        raise ProfileError(
            f"{journal.path} was made with {known.setup.name}, not {fresh.setup.name}: "
            "choose another file with --out, or the same setup"
        )
    if (known.method, known.protocol) != (fresh.method, fresh.protocol):
        raise ProfileError(
            f"{journal.path} was made with --method {known.method} --protocol {known.protocol}, which do not mix with "
            f"{fresh.method} and {fresh.protocol}: choose another file with --out, or the same"
        )
    if not known.meter.counts_as(fresh.meter):
        raise ProfileError(
            f"{journal.path} counts joules by {known.meter.name} ({known.meter.scope}), not by {fresh.meter.name} "
            f"({fresh.meter.scope}): leave out --watts-per-core, set AMPERE_METER={asked_as(known.meter.name)}, or "
            "choose another file with --out"
        )
    return known
