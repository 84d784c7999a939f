"""The clients that can be wired: where their configuration is, and what has to be in it."""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clew.config import Key, Places, is_file
from clew.installing.clients import claude, codex, crush, gemini, opencode, pi, qwen
from clew.installing.formats import TextFormat, dotenv, jsonc, toml_file, yaml_lines
from clew.installing.plugs import Base, ClewCommand, Plug, Plugs, Starting, in_config, in_home


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """A client; in values and texts, @ is the gateway's address."""

    name: str  # as one types it, and its command
    title: str
    base: Base  # the folder that its files are in
    files: tuple[str, ...] = ()  # the first that exists is changed, the last is where a new one goes
    format: TextFormat = jsonc
    gateway: Mapping[Key, str] = field(default_factory=dict)  # what has to be set; nothing: it reads no file for this
    paste: tuple[str, str] | None = None  # two lines that do it without a file
    project: tuple[str, ...] = ()  # files of a project that come before the user's
    hides: bool = False  # whether such a file is read instead of the user's, and not beside it
    variables: tuple[str, ...] = ()  # of the environment that come before the file
    rivals: tuple[Key, ...] = ()  # keys of the same file that come before what is set
    note: str = ""
    plugs: Plugs | None = None  # what makes clew's tools and hooks known to it; None: there is no such way
    gets: str = "clew's tools and hooks"  # with its plugs
    plug_note: str = ""
    starting: Starting | None = None  # what starts the gateway before it is asked; None: it runs nothing then

    def file(self, places: Places) -> Path:
        """The file to change."""
        return self.gateway_plug("").file(places)

    def gateway_plug(self, url: str) -> Plug:
        """What makes it talk through a gateway."""
        return Plug(self.base, self.files, self.values(url), self.format)

    def gateway_plugs(self, url: str, clew: ClewCommand | None) -> list[Plug]:
        """The same, with what starts one by this command."""
        first, others = self.gateway_plug(url), list[Plug]()
        for plug in self.starting(clew, url) if clew and self.starting else ():
            if plug.files == first.files:
                both = {**first.values, **plug.values}
                first = replace(first, values={key: value for key, value in both.items() if value is not None})
            else:
                others.append(plug)
        return [first, *others]

    def values(self, url: str) -> dict[Key, str]:
        """What has to be set, for a gateway."""
        return {key: value.replace("@", url) for key, value in self.gateway.items()}

    def lines(self, url: str, places: Places) -> tuple[str, str]:
        """Two lines to paste."""
        if self.paste is not None:
            first, second = self.paste
            return first.replace("@", url), second.replace("@", url)
        whole: dict[str, Any] = {}
        for key, value in self.values(url).items():
            table = whole
            for name in key[:-1]:
                table = table.setdefault(name, {})
            table[key[-1]] = value
        return f"in {places.shown(self.file(places))}:", json.dumps(whole)

    def is_here(self, places: Places) -> bool:
        """Whether it is on this machine: its command, or what it left when it was run."""
        if shutil.which(self.name, path=places.env.get("PATH", "")) is not None:
            return True
        usual = self.base(places) / self.files[-1] if self.files else self.base(places) / ""
        left = (usual, usual.parent) if self.files else (usual,)
        return any(path.exists() for path in left if path != places.home)

    def project_files(self, places: Places) -> Iterator[Path]:
        """Files of the project one is in that come before the user's; a home folder is no project."""
        folder = places.folder.absolute()
        for place in (folder, *folder.parents):
            if place == places.home:
                return
            for name in self.project:
                if is_file(place / name):
                    yield place / name


PROGRAMS: Mapping[str, ClientProgram] = {
    program.name: program
    for program in (
        ClientProgram(
            "claude",
            "Claude Code",
            in_home(".claude", "CLAUDE_CONFIG_DIR"),
            ("settings.json",),
            gateway={("env", "ANTHROPIC_BASE_URL"): "@"},
            paste=("export ANTHROPIC_BASE_URL=@", "claude"),
            project=(".claude/settings.local.json", ".claude/settings.json"),
            rivals=(("env", "CLAUDE_CODE_USE_BEDROCK"), ("env", "CLAUDE_CODE_USE_VERTEX")),
            plugs=claude.plugs,
            gets="clew's tools, hooks, and its compaction from 2.1.287 on",
            starting=claude.starting,
        ),
        ClientProgram(
            "codex",
            "Codex",
            in_home(".codex", "CODEX_HOME"),
            ("config.toml",),
            toml_file,
            {
                ("model_provider",): "clew",
                ("model_providers", "clew", "name"): "clew",
                ("model_providers", "clew", "base_url"): "@/v1",
                ("model_providers", "clew", "env_key"): "OPENAI_API_KEY",
                ("model_providers", "clew", "wire_api"): "responses",
            },
            paste=(
                'export CLEW="-c model_provider=clew -c model_providers.clew.name=clew '
                '-c model_providers.clew.base_url=@/v1 -c model_providers.clew.env_key=OPENAI_API_KEY"',
                "codex $CLEW",
            ),
            note="Codex then takes its key from OPENAI_API_KEY, and no longer from a ChatGPT login",
            plugs=codex.plugs,
            starting=codex.starting,
            plug_note="Codex runs hooks only after you trust them: start it, and say /hooks",
        ),
        ClientProgram(
            "opencode",
            "opencode",
            in_config("opencode"),
            ("opencode.jsonc", "opencode.json"),
            gateway={
                ("provider", "anthropic", "options", "baseURL"): "@/v1",
                ("provider", "openai", "options", "baseURL"): "@/v1",
                ("provider", "google", "options", "baseURL"): "@/v1beta",
            },
            project=("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
            variables=("OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT"),
            plugs=opencode.plugs,
            gets="clew's tools, and clew fits its requests",
            starting=opencode.starting,
        ),
        ClientProgram(
            "pi",
            "pi",
            in_home(".pi/agent", "PI_CODING_AGENT_DIR"),
            ("models.json",),
            gateway={
                ("providers", "anthropic", "baseUrl"): "@",
                ("providers", "openai", "baseUrl"): "@/v1",
                ("providers", "google", "baseUrl"): "@/v1beta",
            },
            plugs=pi.plugs,
            gets="clew's tools, and clew fits its requests and does its compaction",
            starting=pi.starting,
        ),
        ClientProgram(
            "gemini",
            "Gemini CLI",
            in_home("", "GEMINI_CLI_HOME"),
            (".gemini/.env", ".env", ".gemini/.env"),  # one file is read: a new one would hide the other
            dotenv,
            {("GOOGLE_GEMINI_BASE_URL",): "@"},
            paste=("export GOOGLE_GEMINI_BASE_URL=@", "gemini"),
            project=(".gemini/.env", ".env"),
            hides=True,
            variables=("GOOGLE_GEMINI_BASE_URL",),
            note="Gemini CLI reads this in folders it trusts, and uses it with an API key, not with a Google login",
            plugs=gemini.plugs,
            starting=gemini.starting,
        ),
        ClientProgram(
            "qwen",
            "Qwen Code",
            in_home(".qwen"),
            ("settings.json",),
            gateway={("env", "OPENAI_BASE_URL"): "@/v1", ("env", "ANTHROPIC_BASE_URL"): "@"},
            paste=("export OPENAI_BASE_URL=@/v1", "qwen --auth-type openai"),
            project=(".qwen/settings.json",),
            variables=("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"),
            rivals=(("modelProviders",), ("security", "auth", "baseUrl")),
            plugs=qwen.plugs,
            starting=qwen.starting,
        ),
        ClientProgram(
            "crush",
            "Crush",
            crush.settings_folder,
            ("crush.json",),
            gateway={
                ("providers", "anthropic", "base_url"): "@",
                ("providers", "openai", "base_url"): "@/v1",
                ("providers", "gemini", "base_url"): "@",
            },
            project=(".crush.json", "crush.json"),
            plugs=crush.plugs,
        ),
        ClientProgram(
            "aider",
            "aider",
            in_home(),
            (".aider.conf.yml",),
            yaml_lines,
            {("openai-api-base",): "@/v1"},
            paste=("export OPENAI_API_BASE=@/v1 ANTHROPIC_API_BASE=@", "aider"),
            project=(".aider.conf.yml",),
            variables=("AIDER_OPENAI_API_BASE",),
            note="this is for OpenAI's models; for Claude's there is only the environment: export ANTHROPIC_API_BASE=@",
        ),
        ClientProgram(
            "copilot",
            "Copilot CLI",
            in_home(".copilot"),
            paste=(
                "export COPILOT_PROVIDER_BASE_URL=@/v1 COPILOT_PROVIDER_API_KEY=$OPENAI_API_KEY "
                "COPILOT_MODEL=YOUR-MODEL",
                "copilot",
            ),
        ),
    )
}

# Programs that are not clients of their own.
LIBRARIES: Mapping[str, tuple[str, str]] = {
    "Any OpenAI SDK": ("export OPENAI_BASE_URL=@/v1", "and start your program"),
    "Any Anthropic SDK": ("export ANTHROPIC_BASE_URL=@", "and start your program"),
}


def pasted(url: str, places: Places) -> str:
    """For each client, the two lines that make it talk through the gateway."""
    rows = {program.title: program.lines(url, places) for program in PROGRAMS.values()}
    rows |= {name: (first.replace("@", url), second.replace("@", url)) for name, (first, second) in LIBRARIES.items()}
    width = max(map(len, rows))
    return "\n".join(f"  {name:<{width}}  {first}\n  {'':<{width}}  {second}" for name, (first, second) in rows.items())
