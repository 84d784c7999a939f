"""For all frameworks: models that answer by a script are asked by their agents alone, but where a test wants more."""

import os

os.environ.setdefault("CLEW_SUMMARY_MODEL", "none")
