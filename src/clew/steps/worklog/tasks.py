"""Whether the agent has just finished its list of tasks: a good moment to compact."""

from clew.core.view import View
from clew.steps.worklog.blocks import blocks, standing
from clew.steps.worklog.requests import requests
from clew.steps.worklog.standing import Standing

LATELY = 6  # nodes at the end in which the list was changed
OVER = ("done", "dropped")


def is_done(view: View) -> bool:
    """Whether the newest that was done was to tick off the last task of a list."""
    if not any(act.kind == "plan" for r in requests(view.nodes[-LATELY:]) for step in r.steps for act in step.acts):
        return False
    log = blocks(view)
    stood = standing(log) or Standing()
    for request in requests(view.nodes[max(log, default=-1) + 1 :]):
        stood.add(request)
    return bool(stood.tasks) and all(state in OVER for state, _ in stood.tasks.values())
