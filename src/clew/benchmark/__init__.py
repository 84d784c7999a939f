"""How many needed facts survive per token: clew beside others, in one run."""

from clew.benchmark.judging import Curve, Row
from clew.benchmark.planting import Fact, Planted, plant
from clew.benchmark.plot import picture
from clew.benchmark.suite import Plan, Report, parts

__all__ = ["Curve", "Fact", "Plan", "Planted", "Report", "Row", "parts", "picture", "plant"]
