"""Which commands `clew chat` takes for harmless: those that only look, with known options, inside the folder."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from clew.chat.allowing import AllowedRule, AllowedRules, alike
from clew.chat.looking import LOOKING, looking


@pytest.mark.parametrize("name", LOOKING)
def test_each_row_fits_its_example_and_nothing_more(name: str, tmp_path: Path) -> None:
    row = LOOKING[name]
    assert looking(row.example, tmp_path) == name
    for more in ("--output=x", "--output x", "-o x", "--pre sh", "--exec sh", "--ext-diff", "-@", "--"):
        if (more == "--" and row.ends) or (more == "-o x" and ("o" in row.flags or name == "find")):  # only, others, or
            continue
        assert looking(f"{name} {more}", tmp_path) is None, more
    if "paths" in row.takes or row.takes in ("one path", "files"):
        for path in ("/etc/passwd", "../x", "a/../../x", "/"):
            assert looking(f"{row.example} {path}", tmp_path) is None, path


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "ls -la",
        "\t ls  -l\tsrc ",
        "ls -- -odd-name",
        "cat 'a file with blanks.txt'",
        'cat "it\'s here.txt"',
        "cat src/../src/app.py",
        "head -20 a b",
        "tail -n +5 a",
        "grep -rn 'a|b' src",
        'grep -rn --include "*.py" "/api/v1" src tests',
        "grep -rnA3 TODO src",
        "grep -e /api -r src",
        "rg 'foo\\s*=' -g '*.py' --sort path",
        "rg --files src",
        "find . -maxdepth 2 -name '*.py' -o -name '*.toml'",
        "find src -perm -u+x -size +10k",
        "sed -n '1,80p' src/app.py",
        "sed -n '10,$p' src/app.py",
        "git status",
        "git --no-pager log -5 --oneline",
        "git log --format='%h %s (%an)' main..HEAD -- src",
        "git log -S '/etc/passwd' --author=Ana",
        "git diff HEAD~2 HEAD^ --stat",
        "git diff -U5 origin/main...HEAD",
        "git show HEAD:src/app.py",
        "git show v1.0^{}",
        "git branch -a",
        "git add .",
        "diff -u a.txt b.txt",
        "wc -l README.md",
        "echo 'done: 100%'",
        "date +%s",
    ],
)
def test_what_agents_ask_all_day_is_covered(command: str, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    expected = "{" not in command  # braces want quotes
    assert (looking(command, tmp_path) is not None) is expected


# What each would do if it were run unasked.
HOSTILE = {
    "ls\u00a0/evil.sh": "a file is run whose name begins so",
    "ls\x0c/evil.sh": "the same",
    "ls\u2003x": "the same",
    "ls\x0bx": "the same",
    "ls\rx": "the same",
    "\u00a0ls": "the same",
    "ls\x85x": "the same",
    "ls\ncurl evil.example": "two commands",
    "ls é": "not ASCII",
    "cat \uff0e\uff0e/x": "not ASCII",
    "X=1 ls": "a variable",
    "LD_PRELOAD=./evil.so ls": "a variable",
    "PATH=. ls": "a variable",
    "'X=1' ls": "a program of that name",
    "ls; rm x": "two commands",
    "ls & rm x": "two commands",
    "ls | sh": "two commands",
    "ls > x": "a file is written",
    "ls 2>x": "a file is written",
    "cat < /etc/passwd": "a file is read",
    "cat <(rm x)": "a command is run",
    "ls $(rm x)": "a command is run",
    "ls `rm x`": "a command is run",
    'ls "$(rm x)"': "a command is run",
    'ls "`rm x`"': "a command is run",
    "cat $HOME/.ssh/id_rsa": "a variable",
    "cat ${HOME}": "a variable",
    "cat {/etc/passwd,x}": "braces",
    "cat ~/.ssh/id_rsa": "home",
    "cat ~root/x": "home",
    "cat a=~/.ssh/id_rsa": "home, as bash has it",
    "cat a=b:~/.ssh/id_rsa": "home, as bash has it",
    "cat ''~/x": "not looked into",
    "cat *": "a name may be an option",
    "cat ?x": "a name may be an option",
    "cat [a]": "a name may be an option",
    "cat a\\ b": "not looked into",
    "ls #x": "not looked into",
    "ls !x": "not looked into",
    "cat 'x": "no end",
    'cat "x': "no end",
    "cat /root/.ssh/id_rsa": "outside",
    "cat ../x": "outside",
    "cat src/../../x": "outside",
    "cat -- /etc/passwd": "outside",
    "cat '/etc/passwd'": "outside",
    "cat /e'tc'/passwd": "outside",
    "ls /": "outside",
    "grep -r . /etc": "outside",
    "grep -e x /etc/passwd": "outside: the pattern came before",
    "grep --regexp=x /etc/passwd": "the same",
    "grep -ne x /etc/passwd": "the same",
    "grep -nex /etc/passwd": "the same",
    "grep --color /etc/passwd x ../y": "outside",
    "grep --color x /etc/passwd": "outside",
    "grep -f /etc/passwd x": "reads a file",
    "grep -R x .": "follows links",
    "grep -rR x .": "follows links",
    "grep --incl='*' x .": "an option cut short",
    "rg --files /etc": "outside",
    "rg --pre ./evil.sh x": "runs a program",
    "rg --pre=./evil.sh x": "runs a program",
    "rg -z x": "runs programs",
    "rg -L x": "follows links",
    "rg --hostname-bin ./evil.sh x": "runs a program",
    "find . -exec sh evil.sh ;": "runs a program",
    "find . -exec sh evil.sh ';'": "runs a program",
    "find -- . -exec sh evil.sh '{}' +": "runs a program: -- ends nothing there",
    "find . -delete": "deletes",
    "find . -fprintf x y": "writes",
    "find -L . -name x": "follows links",
    "find . -newer": "no value",
    "sed -i 1p x": "writes",
    "sed -n '1e rm x' x": "runs a program",
    "sed -n '1w x' x": "writes",
    "sed -n '1,5p;1w x' x": "writes",
    "sed -n 1p -i x": "writes",
    "sort -o x y": "writes",
    "sort y -ox": "writes",
    "sort --compress-program=./evil x": "runs a program",
    "uniq x y": "writes",
    "tree -o x": "writes",
    "tree -l": "follows links",
    "file -C -m evil": "writes",
    "file -f /etc/passwd": "reads a file",
    "wc --files0-from=/etc/passwd": "reads a file",
    "du --files0-from=x": "reads a file",
    "diff -r a b": "follows links",
    "diff src src": "reads all files of two folders, and follows links",
    "diff -l a b": "runs a program",
    "date 010100002030": "sets the clock",
    "date -s yesterday": "sets the clock",
    "date -f /etc/passwd": "reads a file",
    "which ./evil": "no name",
    "sha256sum -c sums": "reads files that it names",
    "tail -f x": "has no end",
    "git log --oneline --output /root/.bashrc": "writes",
    "git log --output=x": "writes",
    "git log --outp x": "an option cut short",
    "git diff --no-index --output .envrc /dev/null evil.sh": "writes",
    "git diff --no-index /etc/passwd x": "outside",
    "git diff /etc/passwd /dev/null": "outside",
    "git show --output .git/hooks/pre-commit HEAD": "writes",
    "git show HEAD:../../x": "outside",
    "git diff --ext-diff": "runs a program",
    "git log -p --textconv": "runs a program",
    "git log --show-signature": "runs a program",
    "git log --format='%h %G?'": "runs a program",
    "git show -s --pretty=format:%GK": "runs a program",
    "git diff -O/etc/passwd": "reads a file",
    "git blame --contents /etc/passwd x": "reads a file",
    "git grep -O./evil x": "runs a program",
    "git grep --open-files-in-pager=./evil x": "runs a program",
    "git grep --no-index x /etc": "outside",
    "git -c core.pager=./evil log": "runs a program",
    "git -c alias.x=!sh x": "runs a program",
    "git -C /elsewhere status": "elsewhere",
    "git --git-dir=evil status": "a configuration of somebody else",
    "git --exec-path=. status": "runs a program",
    "git branch new": "makes one",
    "git branch -D main": "deletes",
    "git tag v1": "makes one",
    "git remote add x y": "makes one",
    "git stash": "changes files",
    "git stash drop": "deletes",
    "git commit -m x": "runs hooks",
    "git fetch --upload-pack sh x": "runs a program",
    "git checkout .": "changes files",
    "git add -e": "opens an editor",
    "'git log' --output x": "a program of that name",
    "git 'log --output=x'": "no command of git's",
    "./ls": "another program",
    "/bin/ls": "another program, perhaps",
    "command ls": "not looked into",
    "env ls": "not looked into",
    **dict.fromkeys(
        [
            "pytest -q",
            "ruff check",
            "ruff check --output-file /root/.ssh/authorized_keys",
            "ruff format /other/project",
            "mypy a.py",
            "mypy --python-executable ./evil.sh a.py",
            "tsc a.ts",
            "tsc evil.ts --outFile /root/.bashrc",
            "npm ls",
            "npm audit fix --force",
            "make test",
            "make -f evil.mk",
            "cargo check",
            "cargo check --config evil.toml",
            "uv tree",
            "uv tree --index-url http://evil.example/",
            "go vet",
            "node --version",
            "python --version",
            "awk 1 x",
            "xargs ls",
            "less x",
            "jq . x",
        ],
        "runs code",
    ),
}


@pytest.fixture(scope="module")
def generous(tmp_path_factory: pytest.TempPathFactory) -> tuple[AllowedRules, Path]:
    """Who allowed every command that only looks, in a folder with another in it."""
    folder = tmp_path_factory.mktemp("generous")
    (folder / "src").mkdir()
    rules = AllowedRules(folder / "allowed.json", folder)
    for name in LOOKING:
        rules.add(AllowedRule(name, "prefix"))
    return rules, folder


@pytest.mark.parametrize("command", HOSTILE)
def test_what_does_more_than_look_is_asked_about(command: str, generous: tuple[AllowedRules, Path]) -> None:
    rules, folder = generous
    assert not rules.covers(command), HOSTILE[command]
    assert rules.alike(command) is None
    assert alike(command, folder) is None


def test_links_lead_nowhere(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("x")
    (inside / "file").write_text("x")
    (inside / "near").symlink_to("file")
    (inside / "far").symlink_to(outside / "secret")
    (inside / "away").symlink_to(outside)
    (inside / "loop").symlink_to("loop")
    for path, is_inside in {
        "file": True,
        "near": True,
        "not-there": True,
        str(inside / "file"): True,
        "far": False,
        "away": False,
        "away/secret": False,
        "away/../in/file": True,
        "not-there/../../out/secret": False,
        "loop": False,
        str(outside): False,
        f"{inside}-beside": False,
    }.items():
        assert (looking(f"cat {path}", inside) is not None) is is_inside, path
    here = tmp_path / "link"
    here.symlink_to(inside)
    assert looking("cat file", here) == "cat"
    assert looking(f"cat {inside}/file", here) == "cat"
    assert looking("cat far", here) is None
    assert looking(f"diff file {'x' * 5_000}", here) is None


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_what_is_covered_writes_nothing_and_runs_nothing_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "app.py").write_text("one\n")
    for name in ("old.txt", "new.txt", "README.md", "--output=made", "ls"):
        (folder / name).write_text("#!/bin/sh\ntouch made\n")
        (folder / name).chmod(0o755)
    for line in ("init -q", "add -A", "-c user.name=a -c user.email=a@b commit -qm x"):
        subprocess.run(["git", *line.split()], cwd=folder, check=True)
    before = sorted(path for path in folder.rglob("*") if ".git" not in path.parts)
    for row in LOOKING.values():
        assert looking(row.example, folder) == row.name
        subprocess.run(["bash", "-c", row.example], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL)
    assert sorted(path for path in folder.rglob("*") if ".git" not in path.parts) == before


def test_rules_of_earlier_versions_for_programs_that_run_code_hold_no_more(tmp_path: Path) -> None:
    file = tmp_path / "allowed.json"
    kept = [["git log", "prefix"], ["make test", "prefix"], ["pytest", "prefix"], ["pytest -q", "command"]]
    file.write_text(json.dumps({str(tmp_path): kept}))
    rules = AllowedRules(file, tmp_path)
    assert [str(rule) for rule in rules.all()] == ["git log …", "pytest -q"]
    assert rules.covers("git log -3")
    assert rules.covers("pytest -q"), "exactly this was allowed"
    assert not rules.covers("pytest -q tests")
    assert not rules.covers("make test")
    rules.add(AllowedRule("ls", "prefix"))
    assert ["make test", "prefix"] in json.loads(file.read_text())[str(tmp_path)], "what is in the file is not lost"
