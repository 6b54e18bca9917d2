"""What is known of a device, on disk: measurements are stored in a journal, and the profile is made from it."""

from .files import read_document, write_document
from .journal import Journal, read_records
from .networks import load_network, save_network
from .places import default_path, home, journal_path
from .profile import Observation, Profile, check_device
from .recording import (
    Header,
    header_from,
    observations_from,
    profile_from,
    profiling_seconds_from,
    record_header,
    record_observation,
)

__all__ = [
    "Header",
    "Journal",
    "Observation",
    "Profile",
    "check_device",
    "default_path",
    "header_from",
    "home",
    "journal_path",
    "load_network",
    "observations_from",
    "profile_from",
    "profiling_seconds_from",
    "read_document",
    "read_records",
    "record_header",
    "record_observation",
    "save_network",
    "write_document",
]
