"""Reports: what is known of a device and what models cost on it, as one page or as pictures."""

from .model_part import Run
from .record import Chart, Report, Section, Table
from .report import make_report
from .validation_file import Validated, read_validation
from .writing import save_charts, save_page

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
