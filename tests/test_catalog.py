"""Models by the names that users write, and the snapshot they are looked up in."""

import gzip
import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from clew import catalog
from clew.catalog import Prices, lookup, window

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "refresh_catalog.py"

# As written, what may be sent, and whether that is certain.
NAMES: list[tuple[str, int, bool]] = [
    # OpenAI: the window of the newer ones is shared, the answer's part is set aside
    ("gpt-4o", 128_000, True),
    ("GPT-4o", 128_000, True),
    ("gpt4o", 128_000, True),
    ("gpt-4o-2024-08-06", 128_000, True),
    ("gpt-4o-2031-01-01", 128_000, True),
    ("openai/gpt-4o", 128_000, True),
    ("gpt-4.1-mini", 1_047_576, True),
    ("gpt-4", 8_192, True),
    ("gpt-4-32k", 32_768, True),
    ("gpt-4-turbo", 128_000, True),
    ("gpt-3.5-turbo-0125", 16_385, True),
    ("gpt-35-turbo", 16_385, True),
    ("gpt-5", 272_000, True),
    ("gpt-5.1-codex", 272_000, True),
    ("gpt-5-pro", 128_000, True),
    ("gpt-5.4", 922_000, True),
    ("gpt-5.5-2026-04-23", 922_000, True),
    ("gpt-6-sol", 922_000, True),
    ("gpt-5-high", 272_000, False),
    ("o3", 200_000, True),
    ("o4-mini-2025-04-16", 200_000, True),
    ("o1-mini", 128_000, True),
    ("chatgpt-4o-latest", 128_000, True),
    ("ft:gpt-4o-mini-2024-07-18:acme::abc123", 128_000, True),
    ("gpt-oss-120b", 128_000, False),
    ("groq/openai/gpt-oss-120b", 131_072, True),
    # Azure: a deployment has the name somebody gave it
    ("azure/gpt-4o", 128_000, True),
    ("azure/gpt-4.1-2025-04-14", 1_047_576, True),
    ("azure/prod-gpt-4o", 128_000, False),
    ("azure/my-prod-deployment", 128_000, False),
    # Anthropic, and whoever serves it
    ("claude-sonnet-4-5", 200_000, True),
    ("claude-sonnet-4.5", 200_000, True),
    ("claude-4.5-sonnet", 200_000, True),
    ("claude-sonnet-4-5-20250929", 200_000, True),
    ("claude-sonnet-4-5[1m]", 1_000_000, True),
    ("anthropic/claude-sonnet-4.5", 200_000, True),
    ("vertex_ai/claude-sonnet-4-5@20250929", 200_000, True),
    ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, True),
    ("bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0", 200_000, True),
    ("arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-6-v1", 1_000_000, True),
    ("arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-3-5-haiku-20241022-v1:0", 200_000, True),
    ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3d4", 128_000, False),
    ("openrouter/anthropic/claude-sonnet-4.5", 200_000, False),
    ("openrouter/anthropic/claude-3.7-sonnet:thinking", 200_000, False),
    ("claude-3-5-sonnet-latest", 200_000, True),
    ("claude-3-opus-20240229", 200_000, True),
    ("claude-opus-4-20250514", 200_000, True),
    ("claude-opus-4-6", 1_000_000, True),
    ("claude-opus-5-5", 1_000_000, True),
    ("claude-fable-5-2", 1_000_000, False),
    ("claude-sonet-4-5", 200_000, False),
    # Google
    ("gemini-2.5-pro", 1_048_576, True),
    ("gemini/gemini-2.5-pro", 1_048_576, True),
    ("google/gemini-2.5-flash", 1_048_576, True),
    ("models/gemini-2.5-flash", 1_048_576, True),
    ("vertex_ai/gemini-2.5-pro", 1_048_576, True),
    ("gemini-2.5-pro-preview-06-05", 1_048_576, False),
    ("gemini-3-pro-preview", 1_048_576, True),
    ("gemini-1.5-pro-002", 2_097_152, False),
    # Others
    ("deepseek-chat", 131_072, True),
    ("deepseek/deepseek-r1:free", 65_536, False),
    ("mistral-large-latest", 262_144, True),
    ("mistralai/devstral-2512", 256_000, False),
    ("xai/grok-4.3", 1_000_000, True),
    ("x-ai/grok-4-0709", 256_000, False),
    ("kimi-k3", 1_048_576, True),
    ("kimi-k3.1-pro", 1_048_576, False),
    ("accounts/fireworks/models/kimi-k3", 1_048_576, True),
    ("zai/glm-5.3", 1_000_000, True),
    ("MiniMax-M2.5", 204_800, True),
    ("amazon.nova-pro-v1:0", 300_000, True),
    ("meta.llama3-1-70b-instruct-v1:0", 128_000, True),
    ("together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo", 131_072, True),
    ("perplexity/sonar-pro", 200_000, True),
    ("jamba-large-1.7", 256_000, True),
    ("github_copilot/gpt-4o", 64_000, True),
    # On somebody's own machine the server's setting counts
    ("qwen3:32b", 32_000, False),
    ("ollama/qwen3:32b", 32_000, False),
    ("llama3.1:8b", 8_192, False),
    ("hosted_vllm/meta-llama/Llama-3.3-70B-Instruct", 128_000, False),
    # Nobody knows these
    ("my-model", catalog.DEFAULT, False),
    ("", catalog.DEFAULT, False),
    ("/", catalog.DEFAULT, False),
]


@pytest.mark.parametrize(("name", "size", "exact"), NAMES)
def test_names_as_users_write_them(name: str, size: int, exact: bool) -> None:
    model = lookup(name)
    assert (window(name), model.exact) == (size, exact)
    assert model.source == "catalog" or not model.exact


def test_there_are_enough_names() -> None:
    assert len(NAMES) >= 60


@pytest.mark.parametrize("name", ["gpt-9-ultra", "claude-nova-9", "gemini-9-flash", "grok-12", "mistral-huge-9"])
def test_a_new_model_is_guessed_by_its_family(name: str) -> None:
    model = lookup(name)
    assert (model.source, model.exact, model.prices) == ("family", False, None)
    assert window(name) >= 100_000


def test_a_provider_can_be_named_apart() -> None:
    assert lookup("gpt-4o", "github-copilot").max_input == 64_000
    assert lookup("anthropic/claude-sonnet-4.5", "openrouter").exact is False
    assert lookup("claude-sonnet-4-5", "Anthropic").exact is True
    assert lookup("claude-sonnet-4-5", "no-such-host").exact is False


def test_window_and_what_may_be_sent_differ_where_the_answer_has_its_part() -> None:
    model = lookup("gpt-5.5")
    assert (model.window, model.max_input, model.max_output) == (1_050_000, 922_000, 128_000)
    model = lookup("claude-sonnet-4-5")
    assert (model.name, model.window, model.max_input, model.max_output) == (
        "claude-sonnet-4-5",
        200_000,
        200_000,
        64_000,
    )


def test_prices_are_for_a_million_tokens() -> None:
    assert lookup("claude-sonnet-4-5").prices == Prices(3, 15, 0.3, 3.75, 6)
    regional = lookup("us.anthropic.claude-opus-4-5-20251101-v1:0").prices
    assert regional == Prices(5.5, 27.5, 0.55, 6.875, 11)
    assert lookup("gpt-4o").prices == Prices(2.5, 10, 1.25)
    tiers = ((200_000, Prices(2.5, 15, 0.25)),)
    assert lookup("gemini/gemini-2.5-pro").prices == Prices(1.25, 10, 0.125, tiers=tiers)
    assert lookup("my-model").prices is None


def test_names_have_one_spelling() -> None:
    spellings = ("gpt-4.1", "openai/gpt-4.1", "azure/gpt-4.1-2025-04-14", "GPT-4-1")
    assert {lookup(name).name for name in spellings} == {"gpt-4.1"}
    assert lookup("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0").name == "claude-sonnet-4-5"


def test_every_entry_is_found_under_its_own_name() -> None:
    for host, table in json.loads(gzip.decompress(snapshot()))["hosts"].items():
        for name, row in table.items():
            assert lookup(name, host).max_input == row[0], (host, name)


def snapshot() -> bytes:
    """The snapshot as it is packed."""
    return files("clew.catalog").joinpath("models.json.gz").read_bytes()


def test_the_snapshot_is_small_dated_and_licensed() -> None:
    assert len(snapshot()) <= 70_000
    content = json.loads(gzip.decompress(snapshot()))
    assert content["source"].startswith("litellm ")
    assert content["date"] >= "2026-11-09"
    assert "MIT License" in files("clew.catalog").joinpath("LICENSE-data.md").read_text("utf-8")


def test_importing_reads_no_file() -> None:
    code = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "import clew.catalog\n"
        "assert not [path for path in opened if 'models.json' in path]\n"
        "clew.catalog.window('gpt-4o')\n"
        "assert [path for path in opened if 'models.json' in path]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


LISTING: dict[str, dict[str, Any]] = {
    "sample_spec": {"mode": "one of: chat, embedding", "max_input_tokens": "a number"},
    "gpt-5.9": {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": 1_050_000,
        "max_output_tokens": 128_000,
        "supports_vision": True,
        "input_cost_per_token": 1e-06,
        "output_cost_per_token": 2e-06,
        "input_cost_per_token_above_272k_tokens": 2e-06,
        "output_cost_per_token_above_272k_tokens": 3e-06,
    },
    "gpt-5.9-2027-01-01": {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 64_000},
    "us.maker.thing-v1:0": {"litellm_provider": "bedrock_converse", "mode": "chat", "max_input_tokens": 32_000},
    "picture": {"litellm_provider": "openai", "mode": "image_generation", "max_input_tokens": 32_000},
}


def refresh(folder: Path, *more: str, **models: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run the script on a small listing."""
    listing = folder / "listing.json"
    listing.write_text(json.dumps(LISTING | models), "utf-8")
    command = [
        sys.executable,
        str(SCRIPT),
        str(listing),
        "--out",
        str(folder / "out.gz"),
        "--date",
        "2027-01-02",
        *more,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_script_makes_the_same_bytes_each_time(tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        assert refresh(tmp_path).returncode == 0
        made.append((tmp_path / "out.gz").read_bytes())
    assert made[0] == made[1]
    hosts = json.loads(gzip.decompress(made[0]))["hosts"]
    prices = [[1, 2], [[272_000, 2, 3]]]
    assert hosts["openai"]["gpt-5-9"] == [922_000, 128_000, 1_050_000, *prices]
    assert hosts["openai"]["gpt-5-9-2027-01-01"] == [64_000]
    assert hosts["bedrock"] == {"maker-thing": [32_000]}
    assert "picture" not in hosts["openai"]
    assert hosts["openai"]["gpt-4-32k"] == [32_768]


def test_the_script_says_where_others_disagree(tmp_path: Path) -> None:
    ours = {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": 128_000,
        "input_cost_per_token": 2.5e-06,
        "output_cost_per_token": 1e-05,
    }
    others = tmp_path / "openai.json"
    model = {"id": "gpt-4o", "cost": {"input": 2.5, "output": 10}, "contextWindow": 128_000}
    others.write_text(json.dumps({"openai": {"chat:gpt-4o": model}}), "utf-8")
    assert refresh(tmp_path, "--check", str(others), **{"gpt-4o": ours}).returncode == 0
    model["cost"] = {"input": 2.6, "output": 10}
    others.write_text(json.dumps([{"id": "openai", "models": [model]}]), "utf-8")
    found = refresh(tmp_path, "--check", str(others), **{"gpt-4o": ours})
    assert found.returncode == 1
    assert "openai/gpt-4o: input $2.5, others say $2.6" in found.stdout
