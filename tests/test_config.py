"""Configuration: what counts over what, what is refused and how that is said, and files that are edited in place."""

import contextlib
import json
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import Result

from clew import Budget, catalog
from clew.config import NAME, SETTINGS, Config, Places, Setting, assembled, edited, load, read_key, write_key
from clew.config.places import this_user
from clew.config.toml import changed, line_of
from clew.engine.due import RULES, Why
from clew.errors import BadConfig, BadRequest
from clew.wire.formats import PROVIDERS
from shell import invoke

DOCS = Path(__file__).parents[1] / "docs" / "configuration.md"


class Machine:
    """One user's home, with a project in it and a folder in that."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = self.home / "code" / "project"
        self.folder = self.project / "src"
        self.folder.mkdir(parents=True)
        self.config = self.home / ".config" / "clew" / "config.toml"
        self.config.parent.mkdir(parents=True)

    def user(self, text: str) -> None:
        self.config.write_text(text, encoding="utf-8")

    def team(self, text: str) -> None:
        (self.project / "clew.toml").write_text(text, encoding="utf-8")

    def load(self, **env: str) -> Config:
        return load({"HOME": str(self.home), **env}, self.folder, "linux")

    def problems(self, **env: str) -> tuple[str, ...]:
        with pytest.raises(BadConfig) as caught:
            self.load(**env)
        return caught.value.problems

    def clew(self, *args: str, **env: str) -> Result:
        clean = {name: None for name in os.environ if name.startswith(("CLEW_", "XDG_"))}
        with contextlib.chdir(self.folder):
            home = {"HOME": str(self.home), "USERPROFILE": str(self.home), "COLUMNS": "80", "FORCE_COLOR": None}
            return invoke(["config", *args], env={**clean, **home, "TTY_COMPATIBLE": None, **env})


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# --- what counts ----------------------------------------------------------------------------------------------------


def test_with_nothing_said_the_defaults_hold(machine: Machine) -> None:
    config = machine.load()
    assert config == Config(store=machine.home / ".local/share/clew/clew.db")
    assert set(config.sources.values()) == {"default"}
    assert list(config.sources) == [write_key(s.key) for s in SETTINGS if NAME not in s.key]


def test_the_environment_is_above_the_project_above_the_user_above_the_default(machine: Machine) -> None:
    machine.user("[budget]\nhigh = 0.9\nlow = 0.4\ntail = 7\n")
    machine.team("[budget]\nhigh = 0.8\nlow = 0.3\n")
    config = machine.load(CLEW_BUDGET_HIGH="0.6")
    limits = config.budget
    assert (limits.high, limits.low, limits.tail, limits.start) == (0.6, 0.3, 7, None)
    assert [config.sources[f"budget.{key}"] for key in ("high", "low", "tail", "start")] == [
        "environment CLEW_BUDGET_HIGH",
        "project file ~/code/project/clew.toml",
        "user file ~/.config/clew/config.toml",
        "default",
    ]


@pytest.mark.parametrize(
    ("user", "project", "variable", "holds", "source"),
    [
        (None, None, "", "keys", "default"),
        (None, "off", "", "keys", "default"),
        (None, "redact", "", "redact", "project file"),
        ("refuse", "off", "", "refuse", "user file"),
        ("redact", "redact", "", "redact", "user file"),
        ("redact", "refuse", "", "refuse", "project file"),
        ("refuse", "refuse", "off", "off", "environment"),
    ],
)
def test_a_project_can_make_secrets_only_stricter(
    machine: Machine, user: str | None, project: str | None, variable: str, holds: str, source: str
) -> None:
    machine.user(f'secrets = "{user}"\n' if user else "")
    machine.team(f'secrets = "{project}"\n' if project else "")
    config = machine.load(CLEW_SECRETS=variable)
    assert (config.secrets, config.sources["secrets"].startswith(source)) == (holds, True)


def test_every_setting_has_a_variable_but_those_under_a_name() -> None:
    assert {s.key[0] for s in SETTINGS if not s.variable} == {"models", "gateway"}
    assert {s.variable for s in SETTINGS} >= {"CLEW_STORE", "CLEW_TELEMETRY", "CLEW_BUDGET_WINDOW", "CLEW_SERVERS"}


def test_variables_are_read_as_people_write_them(machine: Machine) -> None:
    config = machine.load(
        CLEW_STORE="~/a.db", CLEW_TELEMETRY="ON", CLEW_BUDGET_WINDOW="32_000", CLEW_SERVERS="http://a:1, http://b/v1"
    )
    assert config.store == machine.home / "a.db"
    assert (config.telemetry, config.budget.window, config.servers) == (True, 32_000, ("http://a:1", "http://b/v1"))
    assert machine.load(CLEW_SERVERS='["http://a:1"]').servers == ("http://a:1",)
    assert machine.load(CLEW_STORE="a.db").store == machine.folder / "a.db"
    assert machine.load(CLEW_SCOPE="").sources["scope"] == "default"


def test_a_path_in_a_file_is_seen_from_that_file(machine: Machine) -> None:
    machine.user('store = "logs/clew.db"\n')
    assert machine.load().store == machine.config.parent / "logs/clew.db"


def test_a_file_of_windows_is_read(machine: Machine) -> None:
    machine.config.write_bytes("\ufeffscope = 'büro'\r\n".encode())
    assert machine.load().scope == "büro"


# --- models and budgets ---------------------------------------------------------------------------------------------


def test_a_model_is_as_the_catalog_says_where_nobody_knows_better(machine: Machine) -> None:
    machine.team('[models."gpt-4o"]\nwindow = 64_000\nprices.output = 1\n[models.mine]\nprices.input = 2\n')
    config = machine.load()
    own, known = config.model("gpt-4o"), catalog.lookup("gpt-4o")
    assert known.prices is not None
    assert own.prices is not None
    assert (own.window, own.max_input, own.max_output, own.source) == (64_000, None, known.max_output, "given")
    assert (own.prices.input, own.prices.output) == (known.prices.input, 1)
    assert config.model("mine").prices is None  # half a price is none
    assert config.model("gpt-4o-mini") == catalog.lookup("gpt-4o-mini")


def test_a_corrected_price_has_no_tiers_of_the_wrong_one(machine: Machine) -> None:
    machine.user('[models."gemini-2.5-pro".prices]\ninput = 1\n')
    own, known = machine.load().model("gemini-2.5-pro").prices, catalog.lookup("gemini-2.5-pro").prices
    assert own is not None
    assert known is not None
    assert (own.tiers, own.input, own.output, bool(known.tiers)) == ((), 1, known.output, True)


def test_the_cache_costs_in_proportion_to_a_corrected_price(machine: Machine) -> None:
    name = "claude-sonnet-4-5"
    machine.user(f"[models.{name}.prices]\ninput = 6\noutput = 7\n")
    own, known = machine.load().model(name).prices, catalog.lookup(name).prices
    assert own is not None
    assert known is not None
    assert known.cache_write is not None
    assert known.cache_read is not None
    assert own.cache_write == known.cache_write * 6 / known.input > 6
    assert (own.output, own.cache_read) == (7, known.cache_read * 6 / known.input)


def test_the_window_of_a_budget_is_that_of_the_call_of_the_budget_of_the_model_of_the_catalog(machine: Machine) -> None:
    machine.user('[models."gpt-4o"]\nwindow = 64_000\n[budget]\nreserve = 1000\n')
    config, capped = machine.load(), machine.load(CLEW_BUDGET_WINDOW="32000")
    own, mini = config.model("gpt-4o"), config.model("gpt-4o-mini")
    assert config.budget_for(own) == Budget(64_000, 1000, model="gpt-4o")
    assert config.budget_for(mini).window == catalog.window("gpt-4o-mini")
    assert capped.budget_for(own).window == capped.budget_for(mini).window == 32_000
    assert capped.budget_for(own, 16_000).window == 16_000


# --- where files are ------------------------------------------------------------------------------------------------


def test_where_the_store_is(tmp_path: Path) -> None:
    env = {"HOME": "/h", "USERPROFILE": "/u"}
    assert Places({**env, "XDG_DATA_HOME": "/x"}, tmp_path, "linux").store() == Path("/x/clew/clew.db")
    assert Places(env, tmp_path, "linux").store() == Path("/h/.local/share/clew/clew.db")
    assert Places(env, tmp_path, "darwin").store() == Path("/h/Library/Application Support/clew/clew.db")
    assert Places({**env, "LOCALAPPDATA": "/l"}, tmp_path, "win32").store() == Path("/l/clew/clew.db")
    assert Places({}, tmp_path, "linux").store() == Path.home() / ".local/share/clew/clew.db"


def test_a_user_has_a_number_where_the_system_gives_one() -> None:
    assert (this_user("win32"), this_user("linux")) == (0, os.geteuid())


def test_where_the_users_file_is(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "USERPROFILE": "/u"}
    assert Places({**env, "XDG_CONFIG_HOME": "/x"}, tmp_path, "darwin").user_files() == [Path("/x/clew/config.toml")]
    assert Places(env, tmp_path, "linux").user_files() == [tmp_path / ".config/clew/config.toml"]
    assert Places({**env, "APPDATA": "/a"}, tmp_path, "win32").user_files() == [Path("/a/clew/config.toml")]
    mac = Places(env, tmp_path, "darwin")
    assert mac.user_file() == tmp_path / "Library/Application Support/clew/config.toml"
    (tmp_path / ".config/clew").mkdir(parents=True)
    (tmp_path / ".config/clew/config.toml").touch()
    assert mac.user_file() == tmp_path / ".config/clew/config.toml"


def test_another_file_can_be_named_and_must_be_there(machine: Machine) -> None:
    machine.user("this is not even read")
    (machine.folder / "mine.toml").write_text('scope = "mine"\n')
    config = machine.load(CLEW_CONFIG="mine.toml")
    assert (config.scope, config.sources["scope"]) == ("mine", "user file ~/code/project/src/mine.toml")
    assert machine.problems(CLEW_CONFIG="~/gone.toml") == (
        "~/gone.toml: no such file; CLEW_CONFIG must name one that exists",
    )


def test_the_nearest_project_counts_and_the_home_folder_is_none(machine: Machine) -> None:
    places = Places({"HOME": str(machine.home)}, machine.folder)
    (machine.home / "clew.toml").touch()
    (machine.home.parent / "clew.toml").touch()
    assert places.project_file() is None
    machine.team("")
    assert places.project_file() == machine.project / "clew.toml"
    (machine.folder / "clew.toml").mkdir()  # no file
    assert places.project_file() == machine.project / "clew.toml"


def test_a_file_named_as_the_users_is_not_the_projects_too(machine: Machine) -> None:
    machine.team('scope = "mine"\n')
    assert machine.load(CLEW_CONFIG=str(machine.project / "clew.toml")).scope == "mine"


@pytest.mark.skipif(os.name == "nt", reason="files there have another kind of owner")
def test_a_project_file_of_another_user_can_neither_set_nor_stop_anything(machine: Machine) -> None:
    machine.team("[budget]\nhigh = 0.9\nnonsense = 1\n")
    owner = (machine.project / "clew.toml").stat().st_uid
    places = Places({"HOME": str(machine.home)}, machine.folder, "linux", user=owner + 1)
    if owner == 0:  # what root left there is as good as one's own
        assert places.trusted(machine.project / "clew.toml")
        os.chown(machine.project / "clew.toml", 4242, 4242)
    config = assembled(places)
    assert config.budget.high is None
    told = "~/code/project/clew.toml: belongs to another user; copy it to make it yours"
    with pytest.raises(BadConfig, match=re.escape(told)):
        edited(places, "budget.high", "0.8", project=True)
    assert config.notes == (
        "~/code/project/clew.toml is not read: it belongs to another user; copy it to make it yours",
    )


# --- what is refused ------------------------------------------------------------------------------------------------


def test_all_problems_are_told_at_once_with_file_line_key_and_remedy(machine: Machine) -> None:
    machine.user(
        'stroe = "x"\nsecrets = "mask"\n[budget]\nhigh = 70\nlow = true\n'
        "[models.gpt-4.1]\nwindow = 5\n[budgt]\n[models.a.prices]\ninput = -1\n"
    )
    machine.team('store = "/tmp/x"\n"servers" = [\n  "http://evil" # = [\n]\nbudget.window = 0\ntelemetry = true\n')
    user, team = "~/.config/clew/config.toml", "~/code/project/clew.toml"
    assert machine.problems(CLEW_BUDGT_HIGH="3", CLEW_LOG="loud", CLEW_SERVERS="http://me:pw@h") == (
        f"{user}:1: stroe is not a setting; did you mean store?",
        f'{user}:2: secrets is "mask"; expected "off", "keys", "redact" or "refuse"',
        f"{user}:4: budget.high is 70; expected a number between 0 and 1, such as 0.7",
        f"{user}:5: budget.low is true; expected a number between 0 and 1, such as 0.5",
        f'{user}:7: models.gpt-4.1.window is not a setting; did you mean models."gpt-4.1".window?',
        f"{user}:10: models.a.prices.input is -1; expected US dollars for a million tokens, such as 2.5",
        f"{user}:8: budgt is not a setting; did you mean budget?",
        f"{team}:1: store is not for a project to set; set it in {user}, or as CLEW_STORE",
        f"{team}:2: servers is not for a project to set; set it in {user}, or as CLEW_SERVERS",
        f"{team}:5: budget.window is 0; expected a whole number of at least 1, such as 200000",
        f"{team}:6: telemetry is not for a project to set; set it in {user}, or as CLEW_TELEMETRY",
        "CLEW_BUDGT_HIGH is not a variable that clew knows; did you mean CLEW_BUDGET_HIGH?",
        'CLEW_LOG is loud; expected "off", "text" or "json"',
        "CLEW_SERVERS is http://…@h; expected a list of base URLs without passwords, "
        'such as ["http://127.0.0.1:11434"]',
    )


def test_a_project_sets_budgets_models_and_stricter_secrets_and_nothing_else() -> None:
    assert {s.key[0]: s.project for s in SETTINGS} == {
        "store": "no",
        "scope": "no",
        "secrets": "stricter",
        "preset": "yes",
        "formats": "no",
        "compaction": "no",
        "compaction_method": "yes",
        "expand": "yes",
        "log": "no",
        "telemetry": "no",
        "servers": "no",
        "memory": "no",
        "summary": "no",
        "gateway": "no",
        "new_session": "yes",
        "agent": "no",
        "budget": "yes",
        "models": "yes",
    }


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: write_key(s.key))
def test_its_own_example_is_accepted_and_other_kinds_are_not(setting: Setting) -> None:
    example = re.search(r"such as (.+)|^(\"\w+\"|true)", setting.kind.expected)
    assert example
    value = tomllib.loads(f"x = {example[1] or example[2]}")["x"]
    assert setting.kind.holds(value)
    assert setting.kind.holds(setting.kind.parse(",".join(value) if isinstance(value, list) else str(value).lower()))
    wrong: object
    for wrong in (None, {}, [1], -1, "\0", [value], float("nan")):
        assert not setting.kind.holds(wrong), wrong
    assert not (type(value) is float and value < 1 and setting.kind.holds(0))  # a share of nothing
    assert not (setting.kind.holds(True) and setting.kind.holds(1))


@pytest.mark.parametrize(
    "url", ["ftp://a", "http://", "localhost:11434", "http://me:pw@a", "http://[", "http://a\n", 7]
)
def test_what_is_no_base_url(machine: Machine, url: object) -> None:
    machine.user(f"servers = [{json.dumps(url)}]\n")
    [problem] = machine.problems()
    assert "expected a list of base URLs without passwords" in problem
    assert "pw" not in problem.replace("passwords", "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"[budget\n", ":1: not TOML: Expected ']' at the end of a table declaration at column 8"),
        (
            b'scope = "a"\nsecrets = redact\n',
            ":2: not TOML: Invalid value at column 11; expected text in double quotes, a number, true or false, "
            "or a [list]",
        ),
        (b"a = 1\na = 2\n", ":2: not TOML: Cannot overwrite a value at column 6"),
        (b"\xff", ": not UTF-8 at byte 0; convert it with iconv -t UTF-8"),
        (b"#" * 1_000_001, ": is larger than 1,000,000 bytes, too large for a configuration; name another file"),
        (b"a = " + b"[" * 50_000, ": nested too deeply"),
        (b"budget = 5\n", ":1: budget is 5; expected a table: [budget] on a line of its own"),
        (b"[models]\ngpt = 5\n", ":2: models.gpt is 5; expected a table: [models.gpt] on a line of its own"),
        (b"scope.a = 1\n", ':1: scope is a table; expected text, such as "work"'),
        (b"zzz = 1\n", ":1: zzz is not a setting; `clew config` shows all there are"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(machine: Machine, text: bytes, problem: str) -> None:
    machine.config.write_bytes(text)
    [told] = machine.problems()
    # Later Pythons word some of these differently at the end; ours follows.
    assert told.startswith(f"~/.config/clew/config.toml{problem.split(' at column')[0]}")
    assert told.endswith(problem.rpartition("; ")[2]) or ";" not in problem


def test_what_is_right_alone_can_be_wrong_together(machine: Machine) -> None:
    machine.user("[budget]\nlow = 0.8\nreserve = 8000\n[models.small]\nwindow = 8000\n")
    assert machine.problems(CLEW_BUDGET_HIGH="0.6") == (
        "budget.low is 0.8 (user file ~/.config/clew/config.toml) and budget.high is 0.6 (environment "
        "CLEW_BUDGET_HIGH); low must not be above high",
        "budget.reserve is 8000 (user file ~/.config/clew/config.toml) and models.small.window is 8000 (user file "
        "~/.config/clew/config.toml); the reserve must leave room in the window",
    )
    assert issubclass(BadConfig, BadRequest)


def test_an_empty_table_is_no_problem(machine: Machine) -> None:
    machine.user('[budget]\n[models."gpt-4.1".prices]\n')
    assert machine.load().models == {}


# --- keys -----------------------------------------------------------------------------------------------------------


NAMED = [setting for setting in SETTINGS if NAME in setting.key]


@given(st.text(min_size=1).filter(lambda name: name.strip("'\"") == name != NAME))
def test_a_key_that_is_written_is_read_again(name: str) -> None:
    for setting in NAMED:
        key = tuple(name if part == NAME else part for part in setting.key)
        assert read_key(write_key(key)) == key


def test_a_key_without_a_name_is_read_again() -> None:
    for setting in SETTINGS:
        assert setting in NAMED or read_key(write_key(setting.key)) == setting.key


@pytest.mark.parametrize("spelled", ["models.gpt-4.1.window", 'models."gpt-4.1".window', "models.'gpt-4.1'.window"])
def test_a_shell_may_eat_the_quotes(spelled: str) -> None:
    assert read_key(spelled) == ("models", "gpt-4.1", "window")


# --- files edited in place ------------------------------------------------------------------------------------------

LONG = """\
# How we work here.

scope = 'a # b'   # not a comment inside
"servers" = [  # our machines
  "http://a", # = [
]  # that is all

# Budgets are low on purpose.
[ budget ] # yes
  high=0.7# tight

[models."gpt-4.1"]
prices.input = 2
text = \"\"\"
[budget]
low = 1
\"\"\"
"""


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("scope", "c", "'a # b'   #", '"c"   #'),
        ("servers", ["http://b"], '[  # our machines\n  "http://a", # = [\n]  # that', '["http://b"]  # that'),
        ("budget.high", 0.9, "high=0.7#", "high=0.9#"),
        ("budget.low", 0.4, "tight\n", "tight\nlow = 0.4\n"),
        ("log", "json", "that is all\n", 'that is all\nlog = "json"\n'),
        ("models.gpt-4.1.prices.output", 8, "input = 2\n", "input = 2\nprices.output = 8\n"),
        ("models.gpt-4.1.window", 9, 'low = 1\n"""\n', 'low = 1\n"""\nwindow = 9\n'),
        ("models.o3.window", 9, 'low = 1\n"""\n', 'low = 1\n"""\n\n[models.o3]\nwindow = 9\n'),
        ("models.a b.prices.input", 1, 'low = 1\n"""\n', 'low = 1\n"""\n\n[models."a b".prices]\ninput = 1\n'),
    ],
)
def test_one_value_changes_and_all_else_stays(key: str, value: object, old: str, new: str) -> None:
    assert LONG.count(old) == 1
    assert changed(LONG, read_key(key), value) == LONG.replace(old, new)
    windows = changed(LONG.replace("\n", "\r\n"), read_key(key), value)
    assert windows == LONG.replace(old, new).replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("text", "key", "result"),
    [
        ("", "scope", "scope = 5\n"),
        ("", "budget.low", "[budget]\nlow = 5\n"),
        ("# top\n\n[budget]\n", "scope", "# top\n\nscope = 5\n\n[budget]\n"),
        ("# of the budget\n[budget]\n", "scope", "scope = 5\n\n# of the budget\n[budget]\n"),
        ("[budget]", "budget.low", "[budget]\nlow = 5\n"),
        ("budget.low = 4", "budget.low", "budget.low = 5\n"),
        ("budget.high = 4", "budget.low", "budget.high = 4\nbudget.low = 5\n"),
        ("[budget]\nlow = 4 # x", "budget.low", "[budget]\nlow = 5 # x\n"),
    ],
)
def test_where_a_new_value_goes(text: str, key: str, result: str) -> None:
    assert changed(text, read_key(key), 5) == result


def test_a_value_is_set_in_an_inline_table() -> None:
    assert changed("budget = { high = 0.7 }\n", ("budget", "high"), 0.5) == "budget = { high = 0.5 }\n"
    assert tomllib.loads(changed("budget = { high = 0.7 } # x\n", ("budget", "low"), 0.5)) == {
        "budget": {"high": 0.7, "low": 0.5}
    }


@pytest.mark.parametrize("text", ["budget = 3\n", "budget = 'a'\n", "budget = [1]\n", "[[budget]]\n"])
def test_where_something_else_is_in_its_place_a_value_is_left_to_people(text: str) -> None:
    with pytest.raises(ValueError, match=r"budget\.low = 0\.5"):
        changed(text, ("budget", "low"), 0.5)


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("\n[budgt]\n# x\n", "budgt", 2),
        ("a = 1\n[models.a]\nwindow = 1\n[budget]\nlow = 1\n[models.b]\nwindw = [\n1]\n", "models.b.windw", 7),
        ("# x\n[models.a]\nwindow = 1\n", "models", 2),
        ("budget.a.b = [\n1]\n", "budget.a", 1),
        ("a = 1\nbudget = { low = 1, b = 2 }\n", "budget.b", 2),
        ("a = 1\n[[budget]]\nb = 2\n", "budget", 2),
        ("a = 1\n[budget]\nb = 2\n", "budget.c", 2),
        ("a = 1\n", "b", None),
    ],
)
def test_the_line_of_a_key(text: str, key: str, line: int | None) -> None:
    assert line_of(text, tuple(key.split("."))) == line


PIECES = st.sampled_from(
    [
        "# note",
        "",
        "  ",
        'scope = "#"',
        "log = 'text' # why",
        "servers = [ # a\n'b=c',\n]",
        "expand=true",
        "store = '''a\n[b]'''",
    ]
)
TABLES = {
    "budget": ["low = 0.1", "high = 1 # x"],
    'models."a=b#c"': ["window = 1", 'prices."input" = 2'],
    "models.d.prices": ["output = 1"],
}


@st.composite
def files(draw: st.DrawFn) -> str:
    parts = draw(st.lists(PIECES, unique=True))
    for name in draw(st.lists(st.sampled_from(sorted(TABLES)), unique=True)):
        parts += [
            "",
            f"[{name}]",
            *draw(st.lists(st.sampled_from(TABLES[name]), unique=True)),
            *draw(st.just(["# end"])),
        ]
    return draw(st.sampled_from(["\n", "\r\n"])).join(parts) + draw(st.sampled_from(["", "\n"]))


@given(files(), st.sampled_from(SETTINGS), st.sampled_from(["a=b#c", "d", "é.1"]), st.sampled_from([3, "x # y", ["a"]]))
def test_in_any_file_every_other_line_stays_in_order(text: str, setting: Setting, name: str, value: object) -> None:
    key = tuple(name if part == NAME else part for part in setting.key)
    result = changed(text, key, value)
    found, before = tomllib.loads(result), tomllib.loads(text)
    for part in key:
        found = found[part]
        before = before.get(part, {})
    assert found == value
    line = line_of(result, key)
    assert line is not None
    assert key[-1] in result.split("\n")[line - 1]
    if before == {}:
        rest = iter(result.replace("\r\n", "\n").split("\n"))
        assert all(line in rest for line in text.replace("\r\n", "\n").rstrip("\n").split("\n"))
    assert result.count("#") >= text.count("#") - (3 if before else 0)


# --- the command ----------------------------------------------------------------------------------------------------


def part(rows: list[str], word: str, count: int) -> list[str]:
    """Rows from the one that begins with a word on."""
    at = next(i for i, row in enumerate(rows) if row.startswith(word))
    return rows[at : at + count]


def test_what_holds_is_shown_with_where_it_is_from(machine: Machine) -> None:
    machine.user('servers = ["http://127.0.0.1:11434", "http://gpu:8000"]\n[models."gpt-4.1"]\nprices.output = 9\n')
    machine.team("budget.window = 32000\n")
    done = machine.clew(CLEW_BUDGET_TAIL="5")
    rows = [line.rstrip() for line in done.stdout.splitlines()]
    assert done.exit_code == 0, done.output
    assert rows[0] == "store               ~/.local/share/clew/clew.db       default"
    assert part(rows, "servers", 3) == [
        "servers             http://127.0.0.1:11434            user file",
        "                    http://gpu:8000",
        "memory              256                               default",
    ]
    assert part(rows, "[summary]", 3) == [
        "[summary]",
        "model               own                               default",
        "instructions        none                              default",
    ]
    assert part(rows, "[budget]", 4) == [
        "[budget]",
        "window              32_000                            project file",
        "reserve             what answers take, at first 8192  default",
        "high                0.7; 0.8 up to 128k               default",
    ]
    assert part(rows, "tail", 99) == [
        "tail                5                                 CLEW_BUDGET_TAIL",
        "",
        '[models."gpt-4.1"]',
        "prices.output       9                                 user file",
        "",
        "user file: ~/.config/clew/config.toml",
        "project file: ~/code/project/clew.toml",
    ]
    assert all(len(row) <= 80 for row in rows)


@pytest.mark.parametrize(
    "key",
    [
        "summary.calls",
        "budget.images",
        "gateway.client_silence",
        "models.gpt-5.images",
        "probe",
        "gateway.body",
        "gateway.upstream_silence",
        "summary.hourly_calls",
        "models.gpt-5.prices.cache_write_1h",
        "models.gpt-5.prices.cache_read",
        "gateway.per_minute",
        "summary.prompt",
        "budget.done",
    ],
)
def test_a_setting_that_was_one_is_passed_over_and_says_so(machine: Machine, key: str) -> None:
    told = "is passed over: it was a setting in 0.1, and clew's own choice holds now; take it out"
    done = machine.clew("set", key, "5")
    assert (done.exit_code, f"{key} {told}" in " ".join(done.output.split())) == (1, True)
    table, _, name = key.replace("gpt-5", '"gpt-5"').rpartition(".")
    machine.user(f"[{table}]\n{name} = 5\n" if table else f"{name} = 5\n")
    assert any(told in note for note in machine.load().notes)
    if not key.startswith("models"):
        variable = f"CLEW_{key.replace('.', '_').upper()}"
        assert f"{variable} {told}" in machine.load(**{variable: "5"}).notes


def test_programs_get_json(machine: Machine) -> None:
    rows = json.loads(machine.clew("--json", CLEW_SCOPE="x").stdout)
    assert rows["scope"] == {"value": "x", "from": "environment CLEW_SCOPE"}
    assert rows["budget.window"] == {"value": None, "from": "default"}
    assert rows["store"]["value"] == str(machine.home / ".local/share/clew/clew.db")


def test_one_value_is_printed_plainly(machine: Machine) -> None:
    machine.user("expand = false\n[models.a]\nwindow = 9000\n")
    for key, value in [
        ("expand", "false"),
        ("models.a.window", "9000"),
        ("budget.window", ""),
        ("models.b.window", ""),
    ]:
        assert machine.clew("get", key).stdout == f"{value}\n"
    done = machine.clew("get", "bugdet.high")
    assert (done.exit_code, done.stderr) == (1, "clew: bugdet.high is not a setting; did you mean budget.high?\n")


def test_the_files_are_listed_even_if_they_are_wrong(machine: Machine) -> None:
    assert machine.clew("path").stdout.split("\n")[1].rstrip() == (
        "project  clew.toml                   not found here or in a folder above"
    )
    machine.user("[")
    machine.team("[")
    assert [line.split() for line in machine.clew("path").stdout.splitlines()] == [
        ["user", "~/.config/clew/config.toml", "read"],
        ["project", "~/code/project/clew.toml", "read"],
    ]


def test_every_problem_has_a_line_of_its_own(machine: Machine) -> None:
    machine.user('"a\\u001b[2J" = 1\nlog = 1\n')
    done = machine.clew()
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        'clew: ~/.config/clew/config.toml:1: "a\\u001b[2J" is not a setting; `clew config` shows all there are\n'
        'clew: ~/.config/clew/config.toml:2: log is 1; expected "off", "text" or "json"\n'
    )


def test_a_value_is_set_in_the_users_file(machine: Machine) -> None:
    machine.user("# mine\nscope = 'a' # b\n")
    machine.config.chmod(0o640)
    done = machine.clew("set", "scope", "work")
    assert done.stdout == "scope is set in ~/.config/clew/config.toml\n"
    assert machine.config.read_text() == '# mine\nscope = "work" # b\n'
    assert stat.S_IMODE(machine.config.stat().st_mode) == 0o640 or os.name == "nt"
    assert [p.name for p in machine.config.parent.iterdir()] == ["config.toml"]


def test_a_new_file_is_for_its_owner_alone(machine: Machine) -> None:
    machine.config.parent.rmdir()
    assert machine.clew("set", "models.gpt-4.1.window", "900000").exit_code == 0
    assert machine.config.read_text() == '[models."gpt-4.1"]\nwindow = 900000\n'
    assert stat.S_IMODE(machine.config.stat().st_mode) == 0o600 or os.name == "nt"


def test_a_value_is_set_in_the_nearest_project_or_here(machine: Machine) -> None:
    assert machine.clew("set", "budget.high", "0.9", "--project").exit_code == 0
    assert (machine.folder / "clew.toml").read_text() == "[budget]\nhigh = 0.9\n"
    (machine.folder / "clew.toml").rename(machine.project / "clew.toml")
    done = machine.clew("set", "budget.low", "0.2", "--project", CLEW_BUDGET_LOW="0.3")
    assert done.stdout == (
        "budget.low is set in ~/code/project/clew.toml\nbut environment CLEW_BUDGET_LOW takes precedence: 0.3\n"
    )
    assert machine.load().budget.low == 0.2


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["budget.high", "70"], "budget.high is 70; expected a number between 0 and 1, such as 0.7"),
        (["budgt.high", "1"], "budgt.high is not a setting; did you mean budget.high?"),
        (
            ["budget.low", "0.9"],
            "budget.low is 0.9 (user file ~/.config/clew/config.toml) and budget.high is 0.8 (default); "
            "low must not be above high",
        ),
        (
            ["store", "x", "--project"],
            "~/code/project/src/clew.toml:1: store is not for a project to set; set it in "
            "~/.config/clew/config.toml, or as CLEW_STORE",
        ),
        (
            ["models.b.window", "5"],
            "~/.config/clew/config.toml: clew cannot set this in the way the file is written; put it there: "
            "models.b.window = 5",
        ),
    ],
)
def test_what_would_be_wrong_is_not_written(machine: Machine, args: list[str], problem: str) -> None:
    machine.user("models = { a = { window = 3 } }\n")
    done = machine.clew("set", *args)
    assert (done.exit_code, done.stderr) == (1, f"clew: {problem}\n")
    assert machine.config.read_text() == "models = { a = { window = 3 } }\n"
    assert not (machine.folder / "clew.toml").exists()


def test_a_wrong_file_is_mended_by_setting_what_is_wrong(machine: Machine) -> None:
    machine.user("[budget]\nhigh = 70 # percent\n")
    assert machine.clew("set", "budget.high", "0.7").exit_code == 0
    assert machine.config.read_text() == "[budget]\nhigh = 0.7 # percent\n"
    machine.user("[budget\n")
    assert machine.clew("set", "budget.high", "0.7").stderr.startswith("clew: ~/.config/clew/config.toml:1: not TOML: ")


def test_the_help_says_what_counts(machine: Machine) -> None:
    text = machine.clew("--help").stdout
    assert "- an environment variable: budget.high is CLEW_BUDGET_HIGH" in text
    assert "Example: clew config set budget.high 0.8" in text
    assert all(len(line) <= 80 for line in text.splitlines())


# --- the page -------------------------------------------------------------------------------------------------------


def test_the_page_has_every_setting() -> None:
    rows = []
    for s in SETTINGS:
        default = s.otherwise or ("from the catalog" if NAME in s.key else json.dumps(s.default))
        project = {"no": "", "yes": "yes", "stricter": "only stricter", "none": 'only "none"'}[s.project]
        rows.append(f"| `{write_key(s.key)}` | {s.meaning} | {s.kind.expected} | {default} | {project} |")
    page = DOCS.read_text(encoding="utf-8")
    assert re.findall(r"^\| `.*$", page, re.MULTILINE) == rows, "\n".join(rows)


def test_the_examples_of_the_page_hold(machine: Machine) -> None:
    user, team = re.findall(r"^```toml\n(.*?)^```$", DOCS.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    machine.user(user)
    machine.team(team)
    assert {s.split(" ")[0] for s in machine.load().sources.values()} == {"default", "user", "project"}


def test_the_page_has_the_rules_that_say_when_a_history_is_compacted() -> None:
    page = (Path(__file__).parents[1] / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = [
        f"| {number} | {rule.when} | {rule.then} | {', '.join(f'`{key}`' for key in rule.settings)} |"
        for number, rule in enumerate(RULES, 1)
    ]
    assert "\n".join(rows) in page
    pays = next(number for number, rule in enumerate(RULES, 1) if rule.why == "would not pay")
    assert re.findall(r"\(rule (\d+)\)", page) == [str(pays)]
    assert [rule.why for rule in RULES] == list(get_args(Why))


def test_why_says_when_a_history_is_compacted_and_by_which_setting(machine: Machine) -> None:
    told = machine.clew("--why").stdout
    assert "budget.high = 0.7; 0.8 up to 128k (default)" in told
    found = json.loads(machine.clew("--why", "--model", "gpt-5", "--json").stdout)
    assert (found["model"], found["limit"], len(found["rules"])) == ("gpt-5", found["window"] - 8_192, len(RULES))
    assert found["down to"] < found["compacted above"] < found["limit"]


def test_an_upstream_may_be_of_each_provider_there_is() -> None:
    [setting] = [one for one in SETTINGS if one.key[-1] == "kind"]
    assert all(setting.kind.holds(kind) for kind in PROVIDERS)
    assert not setting.kind.holds("bedrock")
