"""Phrases that a reader has to translate stay out of the source, the tests and the documents.

Each pattern has a reason and what to say instead. A phrase may be right somewhere: then make the
pattern narrower. Decisions (`docs/adr/`) are history and are not searched.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    *(ROOT / "src").rglob("*.py"),
    *(path for path in (ROOT / "tests").rglob("*.py") if path.name != "test_english.py"),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
]

PHRASES = {
    r"\b(up to|takes?|of|if|in|past|after) so many\b(?! that)": (
        "it needs a gesture to be understood: say `this many`, or `at most N`"
    ),
    r"\b(begins?|began|begun|made?|makes?|numbers?|said|says?) (it )?anew\b": (
        "nobody says it aloud: start over, rebuild, restart, again"
    ),
    r"\bit may be asked again\b": "who asks whom? Say what calls what",
    r"\bmade plain\b": "say what is shown, or what becomes an ordinary view",
    r"\bhow far the wave\b": "say which nodes were visited",
    r"\b(is|are|be|was|were|being) told of\b": (
        "clients receive changes, listeners are notified, functions are called"
    ),
    r"\bWho is told\b": "say what receives it",
    r"\b(takes?|took|taken|taking) in (the |its |their |all |others' )?(changes?|rows?)\b": (
        "process, follow or apply changes"
    ),
    r"\b(lets?|letting) go of\b": "drop, release or delete it",
    r"\b(come|comes|came|bring) to hand\b|\bhave at hand\b": "fetch it, or it is cached",
    r"\bperson who asked\b|\bwhoever asked\b": "name the caller",
    r"\bcan be had\b|\bto be had\b": "say what is available, or where it comes from",
    r"\bby and by\b|\ball in all\b": "leave it out",
    r"\bin the place of\b": "replaces, or instead of",
    r"\bthe newest last\b": "oldest first",
    r"\bhow far the wave has\b": "say which nodes were visited",
    r"\ball below (it|them) is known\b": "say which nodes have been computed",
    r"\bIs it settled\b": "say whether there is anything to choose",
    r"\bgoes naive\b": "is recomputed",
    r"\bnot what they take now\b": "the measurements are out of date",
    r"\bSo many (more )?(changes|seconds|of them)\b": "the number of ..., or this many ...",
    r"\bwhat is told to\b": "what is delivered to, or reported",
    r"\bhow long they take at the least\b": "a lower bound",
    r'(?<!")\bis_far\b': (
        "is_in_lake of a relation, reads_lake of a node, is_remote in the planner; files have it"
    ),
    r"\bthe path that parses nothing\b": "the fast path, which skips the parser",
}

NAMES = {
    "Desk": "a queue of calls to one session",
    "of_far": "say that a relation is in the lake",
    "is_of_far": "reads_lake",
    "counts_far": "has_spark",
    "Course": "a history: RecursionHistory",
    "Outlay": "an investment",
    "Because": "a conjunction is no class: DecisionReason",
    "to_turn": "to_switch",
    "says_the_same": "has_same_definition",
    "is_told": "is_reported: by the code that makes the change",
    "last_look": "last_evaluation",
    "note_way": "note_strategy",
    "_go_by_experience": "_run_measured",
    "Departure": "a client disconnects",
}


def _hits(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_that_nobody_says_aloud(phrase: str) -> None:
    assert not _hits(re.compile(phrase)), PHRASES[phrase]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_does_not_tell(name: str) -> None:
    assert not _hits(re.compile(rf"\b_?{name}\b")), NAMES[name]


QUESTION = re.compile(
    r'^ *"""(Is|Are|Was|Were|Has|Have|Do|Does|Did|Can|May|Would|Will|Should)\b[^"]*\?', re.MULTILINE
)


@pytest.mark.parametrize("folder", ["maintenance", "propagation"])
def test_a_docstring_is_a_statement(folder: str) -> None:
    """`Is it kept?` leaves open who answers: `Whether it is kept` says what is returned."""
    questions = [
        f"{path.name}: {found.group().strip()}"
        for path in (ROOT / "src/harken" / folder).rglob("*.py")
        for found in QUESTION.finditer(path.read_text("utf-8"))
    ]
    assert not questions
