"""A second set of ways to say rules, written after the code that finds them was mended with the first."""

SECOND_SHAPES = {
    "en": (
        "Whatever happens, production data stays out of {}.",
        "We don't merge without a review by {}.",
        "All timestamps in {} have to be UTC.",
        "Secrets never go into {}, not even in tests.",
        "Please stay away from {} until I say so.",
        "Anything that touches {} needs a migration script.",
        "I want every error message in {} to name the file.",
        "You are not allowed to push to {}.",
        "Stick to the style of {} wherever you can.",
        "Make sure that {} is green before each commit.",
        "Don't you dare rename {}.",
        "Two spaces in {}, no tabs.",
        "Answer in short sentences when I ask about {}.",
        "Avoid recursion in {}.",
        "Log lines of {} must not contain names of customers.",
    ),
    "de": ("Im Ordner {} wird nichts gelöscht.", "Halte dich bitte immer an die Vorlage {}."),
    "it": ("Non toccare mai la cartella {}.", "Scrivi sempre i commenti di {} in italiano."),
    "pt": ("Nunca apague o arquivo {}.", "Use sempre {} para os testes."),
    "ja": ("{} は絶対に変更しないでください。",),
    "ru": ("Никогда не меняй {} без вопроса.",),
}
SECOND_CARRIERS = (
    "{r} {a}",
    "{a}\n{r}",
    "Before I forget: {r}",
    "{a} {b} {r}",
    "1. {a}\n2. {r}\n3. {b}",
    "ok. {r} thanks!",
    "As agreed in the meeting, {r} {a}",
)
SECOND_REPLACING = (
    "Never mind {o}, that no longer applies. {r}",
    "Scrap the rule for {o}. {r} {a}",
    "You can ignore what I said on {o} from here on. {r}",
)
