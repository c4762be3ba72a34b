"""Questions → what of them is compared: normalized words, one hash of them all, and hashes of pairs of words.

    "Hi, how do I reset my VPN password?"  →  hi how do i reset my vpn password  →  hi how, how do, do i, i reset, …

When two rows ask the same: they have the same question, or the same request.

    the same question   The words are the same (`normalized`) in all messages but those of the system, and so are the
                        other parts of the messages, such as images, and the other inputs, without parameters and IDs.
                        A profile counts it (distinct, duplicates, leaks, `--write-distinct`), and a build excludes it
                        (`dedupe="question"`, also from the dataset that it extends).
    the same request    Every value is the same, in all messages and all inputs; the order of keys does not count.
                        A diff pairs the rows that have it (validation/originals.py, diff/fingerprints.py). Without
                        case, blanks and punctuation (`hash_words`), AE902 reports it where the ground truth differs,
                        which a profile counts as conflicts.

There is no third notion; near duplicates (near.py) are similar questions.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from agent_eval_schema.cells.arrow import bounds
from agent_eval_schema.cells.hashing import Array, hash_texts
from agent_eval_schema.decoding.chat import is_parameter
from agent_eval_schema.text import jsontext

# --- The words of a question: what of its characters counts.
#
#     Hi,  how do I reset MY e-mail password?   →  hi how do i reset my e mail password
#     C++ or C#? 我的密码                       →  c + + or c # 我 的 密 码
#
# Width and composition (NFKC), case, punctuation, blanks and emoji do not count, nor do characters without a look.
# Symbols such as + and $ do: each is a word. So is each character of a script that has no blanks between words.
#
# What is the same question must depend neither on the Unicode version of Python nor on that of Arrow. So
# `characters.txt` has the kinds of the characters of Unicode 13.0, that of Python 3.10 (`python -m
# tests.helpers.characters` writes it). Unicode guarantees that their composition and case stay what they are. A
# character that Unicode got later is part of a word, as it is; a later emoji does not count.
SEPARATOR, WORD, ALONE, SYMBOL, IGNORED, LATER = range(6)
"""Between words; part of a word; a word by itself; a symbol by itself; without a look (U+00AD); not in Unicode 13.0."""

_LATER_EMOJI = range(0x1F000, 0x1FB00)


def normalized(texts: Sequence[str | None]) -> list[str]:
    """The words of each text, separated by one blank."""
    is_later = _kinds()[_points("".join(text for text in texts if text and not text.isascii()))] == LATER
    fold = _fold_earlier if is_later.any() else _fold
    return [_words(fold(text)) if text else "" for text in texts]


def _words(text: str) -> str:
    if _special().search(text):
        return " ".join(text.translate(_REPLACEMENTS).split())
    # letters, and punctuation of ASCII: as bytes it takes a third of the time
    return b" ".join(text.encode().translate(_ascii()).split()).decode()


def _fold(text: str) -> str:
    """The text without differences of case, width and composition, and with minus signs."""
    text = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return _MINUS.sub("\u2212", text) if "-" in text else text


_MINUS = re.compile("(?<![a-z])-(?= ?[0-9])")
"""A hyphen before a number, unless it is in a word such as covid-19."""


def _fold_earlier(text: str) -> str:
    """The same for the characters of Unicode 13.0 only, the later ones stay as they are."""
    cuts = np.flatnonzero(np.diff(_kinds()[_points(text)] == LATER)) + 1
    parts = [text[start:end] for start, end in pairwise([0, *cuts.tolist(), len(text)])]
    return "".join(part if _kinds()[ord(part[0])] == LATER else _fold(part) for part in parts if part)


def _points(text: str) -> Array:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


@cache
def _kinds() -> Array:
    lines = files(__package__).joinpath("characters.txt").read_text("ascii").splitlines()
    runs = [line.split() for line in lines if not line.startswith("#")]
    starts = [int(start, 16) for start, _ in runs]
    return np.repeat(np.array([int(kind) for _, kind in runs], np.uint8), np.diff([*starts, 0x110000]))


@cache
def _special() -> re.Pattern[str]:
    """Finds a character that is neither a part of a word nor between words and ASCII."""
    kinds = _kinds()[:0x10000]
    plain = (kinds == WORD) | ((kinds == SEPARATOR) & (np.arange(len(kinds)) < 0x80))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], plain, [False]]))).reshape(-1, 2).tolist()
    ranges = (f"{re.escape(chr(first))}-{re.escape(chr(end - 1))}" for first, end in edges)
    return re.compile(f"[^{''.join(ranges)}]")


@cache
def _ascii() -> bytes:
    """The bytes of UTF-8, with a blank in the place of the ASCII characters that are between words."""
    return bytes(ord(" ") if point < 0x80 and _kinds()[point] == SEPARATOR else point for point in range(0x100))


class _Replacements(dict[int, int | str | None]):
    """What `str.translate` puts in the place of each character; filled as the characters occur."""

    def __missing__(self, point: int) -> int | str | None:
        kind = _kinds()[point]
        if kind == SEPARATOR or (kind == LATER and point in _LATER_EMOJI):
            self[point] = " "
        elif kind in (ALONE, SYMBOL):
            self[point] = f" {chr(point)} "
        else:
            self[point] = None if kind == IGNORED else point
        return self[point]


_REPLACEMENTS = _Replacements()


# --- words → hashes
MOST_SHINGLES = 256
"""Of a longer text the smallest hashes are kept, which are a sample that is drawn alike of every text."""


class Shingled(Struct, frozen=True):
    """What is compared of some questions: the hash of each one (`question_hashes`), the number of its words
    without symbols, and the sorted hashes (uint32) of its pairs of words, those of question i from `ends[i]` to
    `ends[i + 1]`."""

    exact: Array
    words: Array
    shingles: Array
    ends: Array


def question_hashes(texts: Sequence[str | None], beside: Sequence[str | None] = ()) -> Array:
    """A hash of each question and of what belongs to it (`beside`); 0 where there is no question."""
    return _hashes(texts, normalized(texts), beside)[0]


def _hashes(texts: Sequence[str | None], words: list[str], beside: Sequence[str | None]) -> tuple[Array, Array]:
    """The hashes of the questions, and of what is beside them (0: nothing). One without words is compared as it is."""
    exact, _ = hash_texts([of or (text or "").strip() for of, text in zip(words, texts, strict=True)])
    exact[exact == _NO_TEXT] = 0
    seeds = np.zeros(len(texts), np.uint64)
    if any(beside):
        seeds, absent = hash_texts(beside)
        seeds[absent if absent is not None else []] = 0
        exact ^= seeds
    return exact, seeds


_NO_TEXT = hash_texts([""])[0][0]


def shingled(texts: Sequence[str | None], beside: Sequence[str | None] = ()) -> Shingled:
    """What is compared of these questions. Two of them have nothing in common if they differ in what is given
    `beside` them, in their numbers or in their negations: order 4471 is another order, and `not` another question."""
    whole = normalized(texts)
    exact, seeds = _hashes(texts, whole, beside)
    empty = np.array([not words for words in whole], bool)
    words = pc.split_pattern(pa.array(whole, pa.string()), " ")
    counts = np.where(empty, 0, np.asarray(pc.list_value_length(words)))
    flat = words.flatten().dictionary_encode()
    distinct, places = flat.dictionary.to_pylist(), np.asarray(flat.indices)
    places = places[np.repeat(~empty, np.asarray(pc.list_value_length(words)))]
    hashes = hash_texts(distinct)[0][places]
    # a word that is a symbol is compared, but not counted
    are_symbols = np.equal(_kinds()[[ord(word) if word and not word[1:] else 0 for word in distinct]], SYMBOL)[places]
    rows = np.repeat(np.arange(len(texts)), counts)
    symbols = np.bincount(rows[are_symbols], minlength=len(texts))
    numbers = pc.match_substring_regex(flat.dictionary, "[0-9]")
    telling = np.asarray(pc.or_(numbers, pc.is_in(flat.dictionary, pa.array(_NEGATIONS.split())))).astype(bool)[places]
    np.add.at(seeds, rows[telling], hashes[telling] * np.uint64(0x94D049BB133111EB))
    before = np.concatenate([np.zeros(1, np.uint64), hashes[:-1]])
    starts = bounds(counts)[:-1]
    before[starts[counts > 0]] = 0  # of a single word; where there are pairs, the first word is only in its pair
    paired = np.ones(len(hashes), bool)
    paired[starts[counts > 1]] = False
    pairs = before * np.uint64(0x9E3779B97F4A7C15) ^ hashes ^ np.repeat(seeds, counts)
    pairs = (pairs ^ (pairs >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    sizes = np.where(counts > 1, counts - 1, counts)
    shingles, ends = _sets((pairs >> np.uint64(32)).astype(np.uint32)[paired], sizes)
    return Shingled(exact, counts.astype(np.int64) - symbols, shingles, ends)


_NEGATIONS = (
    "not no never none nothing nobody without cannot t dont doesnt cant isnt wont nicht nie kein keine keinen ohne ne "
    "pas jamais sans sin nunca ningún non mai senza não nao sem niet geen не нет без 不 没 沒 无 無 非"
)
"""Words of a negation in some languages; the t is that of don't."""


def _sets(values: Array, counts: Array) -> tuple[Array, Array]:
    """The values of each question sorted, each once, and no more than MOST_SHINGLES."""
    rows = np.repeat(np.arange(len(counts), dtype=np.uint64), counts)
    keys = (rows << np.uint64(32)) | values
    keys.sort()  # np.unique would hash them first, in fifty times the time
    keys = keys[np.concatenate([np.ones(min(len(keys), 1), bool), keys[1:] != keys[:-1]])]
    rows = (keys >> np.uint64(32)).astype(np.int64)
    ends = bounds(np.bincount(rows, minlength=len(counts)))
    mask = np.arange(len(keys)) - ends[rows] < MOST_SHINGLES  # by the place of each in its question
    ends = bounds(np.bincount(rows[mask], minlength=len(counts)))
    return (keys[mask] & np.uint64(0xFFFFFFFF)).astype(np.uint32), ends


MIN_WORDS = 4
"""Fewer words may be in any text."""


def contained(parts: Sequence[str], texts: Sequence[str]) -> list[list[int]]:
    """For each part of at least MIN_WORDS words, the places of the normalized texts that contain it word for word."""
    padded = [f" {text} " for text in texts]
    return [
        [i for i, text in enumerate(padded) if f" {words} " in text] if words.count(" ") >= MIN_WORDS - 1 else []
        for words in normalized(parts)
    ]


class ComparedMessage(Struct, gc=False):
    """A message of a canonical request, as far as it is compared."""

    role: str = ""
    content: Any = None


class _Chat(Struct, gc=False):
    messages: list[ComparedMessage] = []


_chat = msgspec.json.Decoder(_Chat).decode


_OF_SYSTEM = ("system", "developer")


def messages_of(requests: Sequence[str | bytes | None]) -> list[list[ComparedMessage]]:
    """The messages of each request; none of one that is no chat, which validation rejects."""
    try:
        return [[] if request is None else _chat(request).messages for request in requests]
    except msgspec.MsgspecError:
        return [[]] if len(requests) == 1 else [messages for one in requests for messages in messages_of([one])]


def question_texts(chats: Iterable[list[ComparedMessage]]) -> list[str]:
    """What each row asks: its messages without those of the system."""
    texts = [
        [m.content if m.content.__class__ is str else content_text(m.content) for m in chat if m.role not in _OF_SYSTEM]
        for chat in chats
    ]
    return ["\n".join(filter(None, parts)) for parts in texts]


def content_text(content: Any) -> str:
    """The text of a message, whose content may have parts."""
    if isinstance(content, list):
        return " ".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    return content if isinstance(content, str) else ""


def beside_questions(
    chats: Iterable[list[ComparedMessage]], questions: Iterable[str], inputs: Iterable[str | bytes | None]
) -> list[str | None]:
    """What belongs to each question beside its words, as JSON text: other parts of the messages, and other inputs. The
    same words about another document are another question."""
    return [_beside(*row) for row in zip(chats, questions, inputs, strict=True)]


def _beside(messages: list[ComparedMessage], question: str, inputs: str | bytes | None) -> str | None:
    rest: dict[str, Any] = {}
    value = jsontext.parse(inputs) if inputs is not None else None
    if isinstance(value, dict) and not (question.startswith("{") and jsontext.parse(question) == value):
        rest = {
            k: v
            for k, v in value.items()
            if v is not None and v != question and k not in _NOT_ASKED and not is_parameter(k, v)
        }
    lists = [m.content for m in messages if isinstance(m.content, list) and m.role not in _OF_SYSTEM]
    if parts := [part for content in lists for part in content if not (isinstance(part, dict) and part.get("text"))]:
        rest["messages"] = parts
    return jsontext.encode_sorted(rest).decode() if rest else None


_NOT_ASKED = frozenset(
    [
        *("messages", "query", "history", "input", "tools"),
        *("id", "request_id", "trace_id", "session", "session_id", "conversation_id", "thread_id", "user_id"),
    ]
)
"""Keys of inputs that the messages contain, and those of user and time, which do not change what is asked."""
