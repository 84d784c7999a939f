"""A model's name as users write it, taken apart: who serves it, and what it is called without its decoration."""

import re
from typing import NamedTuple

# What people and gateways call a host, where it is not the snapshot's word for it.
HOSTS = {
    "amazon-bedrock": "bedrock",
    "aws": "bedrock",
    "aws_bedrock": "bedrock",
    "bedrock_converse": "bedrock",
    "azure_openai": "azure",
    "azure-openai": "azure",
    "azure_text": "azure",
    "vertex": "vertex_ai",
    "google-vertex": "vertex_ai",
    "google_vertexai": "vertex_ai",
    "google": "gemini",
    "google_genai": "gemini",
    "google-ai-studio": "gemini",
    "text-completion-openai": "openai",
    "openai-codex": "openai",
    "mistralai": "mistral",
    "cohere_chat": "cohere",
    "x-ai": "xai",
    "moonshotai": "moonshot",
    "z-ai": "zai",
    "zhipu": "zai",
    "zhipuai": "zai",
    "alibaba": "dashscope",
    "together": "together_ai",
    "togetherai": "together_ai",
    "fireworks": "fireworks_ai",
    "fireworks-ai": "fireworks_ai",
    "accounts": "fireworks_ai",
    "github-copilot": "github_copilot",
    "copilot": "github_copilot",
    "vercel": "vercel_ai_gateway",
    "@cf": "cloudflare",
    "ollama_chat": "ollama",
    "lmstudio": "lm_studio",
    "hosted_vllm": "vllm",
    "openrouter": "openrouter",
}
# The limit is what the server was started with, and never what the model's card says.
LOCAL = frozenset({"ollama", "lm_studio", "vllm", "llamacpp", "llama.cpp", "llamafile", "mlx", "sglang", "xinference"})
# Whose word on a model counts when no host is named. Open weights with many hosts have nobody.
VENDORS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"gpt-oss", ()),
    (r"(ft:)?(gpt|o\d(?!\d)|chatgpt|codex|davinci|babbage)", ("openai",)),
    (r"claude", ("anthropic",)),
    (r"gemini", ("gemini", "vertex_ai")),
    (r"deepseek", ("deepseek",)),
    (r"mi[sx]tral|codestral|magistral|ministral|devstral|pixtral|voxtral", ("mistral",)),
    (r"grok", ("xai",)),
    (r"command", ("cohere",)),
    (r"qwen|qwq|qvq", ("dashscope",)),
    (r"kimi|moonshot", ("moonshot",)),
    (r"glm", ("zai",)),
    (r"minimax", ("minimax",)),
    (r"nova", ("amazon_nova", "bedrock")),
    (r"sonar", ("perplexity",)),
    (r"jamba", ("ai21",)),
    (r"llama", ("meta_llama",)),
    (r"mimo", ("xiaomi_mimo",)),
    (r"phi|gemma|olmo|nemotron|granite|yi-|titan", ()),
)
_FAMILY = re.compile(r"(?<![a-z0-9])(?:" + "|".join(pattern for pattern, _ in VENDORS) + ")")

_ARN = re.compile(r"^arn:[^/]*:(?:(foundation-model|inference-profile)|[\w-]+)/")
_REGION = re.compile(r"^(?:us|eu|apac|global|jp|au|ca|sa|us-gov|ap|af|me)\.")
_MAKER = re.compile(
    r"^(?:anthropic|amazon|meta|mistral|cohere|ai21|deepseek|qwen|openai|google|minimax|moonshotai?|nvidia|writer|xai|"
    r"stability|luma|zai|system\.ai)\."
)
_VERSION = re.compile(r"-v\d+:\d+(?::\w+)?$|-\d:\d$|(?<=\d)-v\d$")
_DATE = re.compile(r"[-@]20\d{6}$|-20\d\d-\d\d-\d\d$|@(?:default|latest|00\d)$")
_ROUTER = re.compile(r":(?:free|thinking|nitro|floor|online|beta|extended|exacto)$")
_LONG = re.compile(r"\[1m\]$")
_CLAUDE = re.compile(
    r"^claude-(?:(?P<a>[a-z]+)-(?P<b>\d{1,2}(?:-\d{1,2})?)|(?P<c>\d{1,2}(?:-\d{1,2})?)-(?P<d>[a-z]+))(?![a-z0-9])"
)


class ParsedName(NamedTuple):
    """A name taken apart; `forms` go from as written to bare, and are empty for what nobody can look up."""

    hosts: tuple[str, ...]  # of the path before the name, outermost first
    forms: tuple[str, ...]
    tagged: bool = False  # a tag such as :32b, which only local servers use
    long: bool = False  # Claude Code's way to ask for the window of a million


def read(model: str) -> ParsedName:
    """Take a name apart."""
    whole = model.strip().lower()
    arn = _ARN.match(whole)
    if arn and not arn[1]:
        return ParsedName(("bedrock",), ())
    *path, name = [part for part in _ARN.sub("", whole).split("/") if part] or [""]
    hosts = [HOSTS.get(part, part) for part in path]
    long = bool(_LONG.search(name))
    forms = [_LONG.sub("", name)]
    if forms[0].startswith("ft:"):  # ft:base:organisation:name:id
        forms = [":".join(forms[0].split(":")[:2])]
    for pattern, host in ((_REGION, ""), (_MAKER, "bedrock"), (_VERSION, ""), (_DATE, ""), (_ROUTER, "openrouter")):
        bare = pattern.sub("", forms[-1])
        if bare != forms[-1] and bare:
            forms.append(bare)
            hosts += [host] if host == "bedrock" and not hosts else []
            hosts = [host] if host == "openrouter" else hosts
    if forms[-1].endswith("-latest"):
        forms.append(forms[-1].removesuffix("-latest"))
    if arn:
        hosts = ["bedrock"]
    tagged = ":" in forms[-1] and not forms[-1].startswith("ft:")
    if tagged:
        forms += [forms[-1].replace(":", "-"), forms[-1].partition(":")[0]]
    return ParsedName(tuple(hosts), tuple(forms), tagged, long)


def fold(name: str) -> str:
    """One spelling for names that differ in punctuation or word order only."""
    name = re.sub(r"(?<=\d)p(?=\d)", "-", name.lower())
    name = re.sub(r"[._]", "-", name)
    name = re.sub(r"^gpt-?35", "gpt-3-5", name)
    name = re.sub(r"^gpt(?=\d)", "gpt-", name)
    name = re.sub(r"llama-?v?(?=\d)", "llama-", name)
    name = re.sub(r"^qwen-(?=\d)", "qwen", name)
    if found := _CLAUDE.match(name):
        word, number = found["a"] or found["d"], found["b"] or found["c"]
        early = number.startswith("3")
        name = f"claude-{number}-{word}" if early else f"claude-{word}-{number}"
        name += found.string[found.end() :]
    return name


def family(name: str) -> str | None:
    """The name from where a family we know begins; None without one."""
    found = _FAMILY.search(name)
    return name[found.start() :] if found else None


def vendors(name: str) -> tuple[str, ...]:
    """The hosts of record for a name, the first to ask first."""
    return next((hosts for pattern, hosts in VENDORS if re.match(pattern, name)), ())
