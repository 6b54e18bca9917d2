"""Reports: what is known of a device and what models cost on it, as one page or as pictures."""

from .accuracy import Validated, draw_validation, read_validation
from .model_section import Run
from .record import Chart, Report, Section, Table
from .report import WrittenReport, make_report, save_charts, save_page, write_report

__all__ = [
    "Chart",
    "Report",
    "Run",
    "Section",
    "Table",
    "Validated",
    "WrittenReport",
    "draw_validation",
    "make_report",
    "read_validation",
    "save_charts",
    "save_page",
    "write_report",
]
