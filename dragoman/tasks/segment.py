"""From a line of text to what a model translates at once: sentences, and parts of long ones, as
tokens. Knows text, a tokeniser and how long an input the model takes; nothing of search."""

from __future__ import annotations

import unicodedata
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman.folder.description import Description
from dragoman.runtimes.runtime import Request
from dragoman.tasks.request import TranslateRequest
from dragoman.text.copying import NAMES, TAUGHT, Concealed, Concealer, Named, named_in, part_of
from dragoman.text.glossary import Glossary
from dragoman.text.normalise import normalise
from dragoman.text.protected import protected
from dragoman.text.sentences import split as split_sentences
from dragoman.text.steering_tags import SEPARATOR, tag
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.unspellable import Unspellable
from dragoman.text.words import indices_of

_SENTENCE_ENDS = (".", "!", "?", ";", ":", "।", "።")
_FULL_ENDS = ("。", "！", "？")  # no space follows them
# Terms that one search is held to. Its beam grows with them, the work of a step with their square:
# a sentence with more of them is translated in parts.
MAX_TERMS = 16


@dataclass(frozen=True)
class Segment:
    """A stretch of a line that is translated at once: a sentence, or as much of a long one as the
    model can take."""

    named: Named  # its text, with names in place of what is copied
    request: Request
    space: str = ""  # what stands between it and the next, or follows the last
    has_names: bool = False  # whether names can occur, in its text and in a translation
    capitals: bool = False  # whether the line has it in capitals, and so will a translation

    @property
    def text(self) -> str:
        """Its text as the line has it."""
        return self.named.original


@dataclass(frozen=True)
class Wanted:
    """Something that must be in a translation, and what it translates."""

    source: str
    forms: Sequence[str]  # one of which must be there
    number: int = 0  # of the occurrence of `source` in its text


class Trail:
    """The last sentences before the next one, at most `most` of them."""

    def __init__(self, most: int) -> None:
        self.sentences: deque[str] = deque(maxlen=most)

    def add(self, sentence: str) -> None:
        """Take in the next sentence."""
        if sentence.strip():
            self.sentences.append(sentence)

    def end(self) -> None:
        """Forget them: a new text begins."""
        self.sentences.clear()


class Segmenter:
    """Cuts lines into segments for one model."""

    def __init__(self, tokenizer: Tokenizer, description: Description) -> None:
        self.tokenizer = tokenizer
        self.description = description
        source = tokenizer.pieces(range(tokenizer.source_size), "source")
        self._concealer = Concealer(
            description.source_language,
            description.target_language,
            Unspellable(source) if tokenizer.copies else None,
        )

    def segments(
        self, line: str, asked: TranslateRequest, before: Trail | None = None
    ) -> list[Segment]:
        """The segments of a line, with the white space between them; none if it has no text.

        `before` are the sentences that stand before the line; its own join them.
        """
        trail = Trail(asked.context) if before is None else before
        concealed = self._concealer.conceal(line) if asked.protect else Concealed(line, ())
        segments: list[Segment] = []
        for sentence, space in self._sentences(concealed, asked.split):
            named = concealed.named(sentence, self._n_names)
            plain = self._without_gender_forms(named)
            calm = plain if asked.prefix else self._without_capitals(plain)
            parts = self._parts(calm)
            for tokens, part in parts:
                prefix = asked.prefix if not segments else ""
                read = self._read_before(len(tokens), asked, trail)
                whole = self._segment(tokens, part, prefix, asked)
                for segment in self._with_few_terms(whole, asked):
                    request = replace(segment.request, before=read) if read else segment.request
                    segments.append(replace(segment, request=request, capitals=calm is not plain))
                trail.add(part.original)
            if not segments:
                continue
            last = segments[-1]
            between = space if parts else last.space + space
            segments[-1] = replace(last, space=between)
        return segments

    def cut_by_spans(self, sentence: str) -> list[str]:
        """The sentence in the parts in which it is read because it has so many spans."""
        concealed = self._concealer.conceal(sentence)
        parts = concealed.cut(concealed.text, "", self._n_names)
        return [concealed.reveal(part) for part, _ in parts]

    def read_along(self, line: str, trail: Trail) -> None:
        """Let the sentences of a line join those before the next; an empty line ends a text."""
        if not line.strip():
            trail.end()
        for sentence, _ in split_sentences(line, self.description.source_language):
            trail.add(sentence)

    def parts(self, sentence: str) -> list[str]:
        """The sentence as texts that the model can take, cut as `segments` cuts it."""
        if self._surely_fits(sentence):
            return [sentence]
        (tokens,) = self.tokenizer.encode([sentence], "source")
        parts = self.split_tokens(tokens)
        if len(parts) <= 1:
            return [sentence]
        return self.tokenizer.decode(parts, "source")

    def _surely_fits(self, sentence: str) -> bool:
        """Return whether the model can take a sentence, as far as that is seen without its tokens:
        of these, each has a byte at least, and one more may be the space before the first word."""
        room = self.description.longest - len(self.description.frame.source(()))
        if len(sentence) >= room:
            return False
        return len(normalise(sentence).encode()) < room

    def split_tokens(self, tokens: list[int]) -> list[list[int]]:
        """The tokens in parts that the model can take: split after a sentence if possible, else
        between words, else where the limit falls."""
        # The tokens of the frame, such as the end, are added later.
        frame = self.description.frame.source(())
        limit = self.description.longest - len(frame)
        parts = []
        while len(tokens) > limit:
            end = self._last_break(tokens, limit)
            parts.append(tokens[:end])
            tokens = tokens[end:]
        if tokens:
            parts.append(tokens)
        return parts

    def with_terms(self, request: Request, terms: Sequence[Wanted]) -> Request:
        """The request with each term's forms as tokens, and the source tokens of the term."""
        if not terms:
            return request
        pieces = self.tokenizer.pieces(request.tokens, "source")
        forms = [self._forms(wanted.forms) for wanted in terms]
        places = [indices_of(wanted.source, pieces, wanted.number) for wanted in terms]
        return replace(
            request,
            terms=[*request.terms, *forms],
            places=[*request.places, *places],
        )

    def with_copies(self, segment: Segment) -> Segment:
        """The segment with everything that it must carry over as a term of its request."""
        request = segment.request
        named = segment.named
        copies = self.tokenizer.copies[: len(named.copies)]
        forms = [[[copy]] for copy in copies]
        places = [_indices(copy, request.tokens) for copy in copies]
        request = replace(
            request,
            terms=[*request.terms, *forms],
            places=[*request.places, *places],
            once=copies,
        )
        others = [text for text in protected(named.text) if text not in NAMES]
        request = self.with_terms(request, _each(others[:MAX_TERMS]))
        # Rather some of them than a search that takes minutes.
        few = replace(
            request,
            terms=request.terms[:MAX_TERMS],
            places=request.places[:MAX_TERMS],
        )
        return replace(segment, request=few)

    def _sentences(self, concealed: Concealed, split: bool) -> Iterator[tuple[str, str]]:
        """The sentences of a line, each with the white space that follows it; one with more spans
        than there are names comes in parts."""
        line = concealed.text
        text = line.rstrip()
        sentences = [(text, line[len(text) :])]
        if split:
            sentences = list(split_sentences(line, self.description.source_language))
        for sentence, space in sentences:
            yield from concealed.cut(sentence, space, self._n_names)

    @property
    def _n_names(self) -> int:
        """How many spans of a sentence get names."""
        return min(TAUGHT, len(self.tokenizer.copies))

    def _without_gender_forms(self, named: Named) -> Named:
        """A German sentence without words like "Lehrer*innen", for which other languages have
        none, and which models do not know."""
        if self.description.source_language != "de" or self.description.target_language == "de":
            return named
        from dragoman.text.gender_forms import without_gender_forms

        return replace(named, text=without_gender_forms(named.text))

    def _without_capitals(self, named: Named) -> Named:
        """A sentence in capitals written without them, if the vocabulary then needs fewer tokens:
        a model that has learnt from capitals keeps them."""
        letters = named.text.replace("<x", "").replace("ß", "")  # <x1> is the name of a copy
        if not letters.isupper():
            return named
        from dragoman.text.capitals import is_in_capitals, without_capitals

        if not is_in_capitals(named.text):
            return named
        calm = without_capitals(named.text, self.description.source_language)
        loud_tokens, calm_tokens = self.tokenizer.encode([named.text, calm], "source")
        return replace(named, text=calm) if len(calm_tokens) < len(loud_tokens) else named

    def _parts(self, named: Named) -> list[tuple[list[int], Named]]:
        """A sentence in parts that the model can take, each with its tokens."""
        (tokens,) = self.tokenizer.encode([named.text], "source")
        parts = self.split_tokens(tokens)
        if len(parts) == 1:
            return [(parts[0], named)]
        return self._named_parts(parts, named)

    def _named_parts(self, parts: list[list[int]], named: Named) -> list[tuple[list[int], Named]]:
        """The parts of a sentence, in each of which the names count from the first again."""
        texts = self.tokenizer.decode(parts, "source")
        if not named.copies:
            unnamed = [Named(text, text, ()) for text in texts]
            return list(zip(parts, unnamed, strict=True))
        renamed = [part_of(text, named.copies) for text in texts]
        new_texts = [part.text for part in renamed]
        new_tokens = self.tokenizer.encode(new_texts, "source")
        return list(zip(new_tokens, renamed, strict=True))

    def _segment(
        self,
        tokens: list[int],
        named: Named,
        prefix: str,
        asked: TranslateRequest,
    ) -> Segment:
        begun = named_in(prefix, named.copies)
        forced: list[int] = []
        if prefix:
            (forced,) = self.tokenizer.encode([begun], "target")
        terms = self._terms(named.text, asked.glossary)
        request = self.with_terms(Request(tokens, forced), terms)
        return Segment(
            named=named,
            request=request,
            space=" ",
            has_names=asked.protect and bool(self.tokenizer.copies),
        )

    def _read_before(self, count: int, asked: TranslateRequest, trail: Trail) -> list[int]:
        """What is read before `count` tokens of a sentence: tags, and as many of the sentences
        before it as fit."""
        names = [name for name in (asked.tone, asked.variant) if name]
        tags = [token for name in names for token in self._source_tokens(tag(name))]
        if not trail.sentences:
            return tags
        room = self.description.longest - len(self.description.frame.source(()))
        room -= count + len(tags)
        separator = self._source_tokens(SEPARATOR)
        context: list[int] = []
        for sentence in reversed(trail.sentences):
            tokens = [*self._source_tokens(sentence), *separator]
            if len(context) + len(tokens) > room:
                break
            context = [*tokens, *context]
        return tags + context

    def _source_tokens(self, text: str) -> list[int]:
        (tokens,) = self.tokenizer.encode([text], "source")
        return tokens

    def _terms(self, text: str, glossary: Glossary | None) -> list[Wanted]:
        """Every occurrence of a term of the glossary."""
        if glossary is None:
            return []
        described = self.description
        terms = []
        normalised = normalise(text)
        occurrences = glossary.occurrences(
            text, described.source_language, described.target_language
        )
        for found in occurrences:
            source = normalised[found.start : found.end]
            before = normalised[: found.start]
            number = before.lower().count(source.lower())
            terms.append(Wanted(source, found.term.forms, number))
        return terms

    def _with_few_terms(self, segment: Segment, asked: TranslateRequest) -> list[Segment]:
        """The segment, or parts of it that have no more than `MAX_TERMS` terms each."""
        request = segment.request
        if len(request.terms) <= MAX_TERMS or len(request.tokens) < 2:
            return [segment]
        cut = self._before_a_term(request)
        first = list(request.tokens[:cut])
        second = list(request.tokens[cut:])
        parts: list[Segment] = []
        for tokens, named in self._named_parts([first, second], segment.named):
            part = self._segment(tokens, named, "", asked)
            if not parts:
                begun = replace(part.request, prefix=request.prefix)
                part = replace(part, request=begun)
            parts += self._with_few_terms(part, asked)
        return parts

    def _before_a_term(self, request: Request) -> int:
        """Where to cut a sentence that has too many terms: before the first that is one too many
        if it begins a word, else in the middle."""
        tokens = list(request.tokens)
        pieces = self.tokenizer.pieces(tokens, "source")
        cut = min(request.places[MAX_TERMS], default=0)
        if cut > 0 and pieces[cut].startswith("▁"):
            return cut
        return self._last_break(tokens, len(tokens) // 2)

    def _last_break(self, tokens: list[int], limit: int) -> int:
        """The best place to split, at most `limit` tokens from the start."""
        pieces = self.tokenizer.pieces(tokens[: limit + 1], "source")
        words = []
        sentences = []
        for index in range(1, limit + 1):
            before = pieces[index - 1]
            begins_word = pieces[index].startswith("▁")
            if begins_word:
                words.append(index)
            if begins_word and before.endswith(_SENTENCE_ENDS):
                sentences.append(index)
            if before.endswith(_FULL_ENDS):
                sentences.append(index)
        return max(sentences or words or [limit])

    def _forms(self, forms: Sequence[str]) -> list[list[int]]:
        """Each form as tokens; in scripts without spaces also without a first piece that is
        nothing but the space before a word."""
        tokenised = self.tokenizer.encode(list(forms), "target")
        bare = []
        for form, tokens in zip(forms, tokenised, strict=True):
            letter = form[:1] or " "
            unspaced = unicodedata.category(letter) == "Lo"
            first = self.tokenizer.pieces(tokens[:1], "target")
            if unspaced and len(tokens) > 1 and first == ["▁"]:
                bare.append(tokens[1:])
        return tokenised + bare


def _indices(token: int, tokens: Sequence[int]) -> list[int]:
    """Where a token stands among others."""
    return [index for index, other in enumerate(tokens) if other == token]


def _each(texts: Sequence[str]) -> list[Wanted]:
    """Every one of the texts as it is, equal ones as often as they occur."""
    seen: Counter[str] = Counter()
    wanted = []
    for text in texts:
        wanted.append(Wanted(text, [text], seen[text]))
        seen[text] += 1
    return wanted
