"""What a task of a team is told of the ones before it: all they wrote, or a summary of each. Needs no framework."""

from clew.agent.tasks.outputs import DIVIDER, Output, Strategy, Told, aggregate, aggregate_summarized, effective
from clew.agent.tasks.summaries import Summaries

__all__ = ["DIVIDER", "Output", "Strategy", "Summaries", "Told", "aggregate", "aggregate_summarized", "effective"]
