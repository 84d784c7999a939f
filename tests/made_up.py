"""An environment with a package that is made up, for tests of what runs packages of others."""

import sys
from pathlib import Path


def made_up_environment(folder: Path, ways: str) -> Path:
    """The folder, with a package of these ways and a Python that runs it."""
    (folder / "use_made_up.py").write_text(ways)
    (folder / ".venv-made_up" / "bin").mkdir(parents=True)
    (folder / ".venv-made_up" / "bin" / "python").symlink_to(sys.executable)
    return folder
