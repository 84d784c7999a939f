"""Files that run code on their own: who writes one has run a command, only later.

What is run because somebody says so (a Makefile, a test, a package's scripts) is no such file: it is what an agent is
there to write. These are run by another program that was asked for something else: git at a commit or a status, a
shell when it starts, an editor when it opens a folder, an agent when it begins.
"""

from pathlib import Path

from clew.clients.known import RUNNING

_FOLDERS = frozenset({".git", "git~1", ".husky", ".githooks", ".ssh"})
_FILES = frozenset(
    """.gitconfig .envrc .mcp.json .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile
    .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc config.fish .vimrc .exrc .nvimrc .gdbinit .lldbinit
    .pdbrc .inputrc .xprofile .xinitrc sitecustomize.py usercustomize.py""".split()
)
_PLACES = frozenset(
    """.vscode/tasks.json .vscode/settings.json .vscode/mcp.json .devcontainer/devcontainer.json .devcontainer.json
    .cursor/mcp.json .cursor/hooks.json""".split()
).union(RUNNING)


def runs_itself(path: Path) -> bool:
    """Whether a file, all links followed, is one that others run unasked; on some disks capitals are the same file."""
    parts = [part.casefold().rstrip(". ") for part in path.parts]
    name = parts[-1]
    return (
        not _FOLDERS.isdisjoint(parts)
        or name in _FILES
        or name.endswith(".pth")
        or "/".join(parts[-2:]) in _PLACES
        or name in _PLACES
    )
