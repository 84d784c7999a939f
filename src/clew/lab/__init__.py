"""Sessions lived again, call by call: what each way to keep them small would have cost and left out of view."""

from clew.lab.act import Lab, LabWay
from clew.lab.report import LabReport

__all__ = ["Lab", "LabReport", "LabWay"]
