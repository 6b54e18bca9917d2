"""Reports: what is known of a device and what models cost on it, as one page or as pictures."""

from .accuracy import Validated, read_validation
from .model_section import Run
from .record import Chart, Report, Section, Table
from .report import make_report, save_charts, save_page

__all__ = [
    "Chart",
    "Report",
    "Run",
    "Section",
    "Table",
    "Validated",
    "make_report",
    "read_validation",
    "save_charts",
    "save_page",
]
