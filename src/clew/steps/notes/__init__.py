"""Notes became chapters."""

raise ImportError("clew.steps.notes is no more: `Writer` is `clew.steps.chapters.by_model.ByModel`", name=__name__)
