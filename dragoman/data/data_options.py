"""What the user may choose about the training text. Knows no files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from dragoman.errors import OptionError

MOST_CONTEXT = 10  # sentences
_VARIANT = re.compile(r"[A-Za-z0-9-]{0,20}")


@dataclass(frozen=True)
class DataOptions:
    """Which text to train on, and what of it to leave out."""

    train: Annotated[
        tuple[str, ...],
        "training files: pairs of aligned files, or .tsv, .tmx and .jsonl files",
    ] = ()
    weights: Annotated[
        tuple[float, ...],
        "how often each corpus is drawn from, one number for each; default: all 1",
    ] = ()
    prefixes: Annotated[
        tuple[str, ...],
        "text put before every source of each corpus, one for each, such as 'summarise:'",
    ] = ()
    valid: Annotated[
        tuple[str, ...],
        "validation files; default: a part of the training text is set aside",
    ] = ()
    test: Annotated[
        tuple[str, ...],
        "test files, read only to keep their sentences out of the training text",
    ] = ()
    source_language: Annotated[
        str,
        "such as en; default: taken from the names of the files",
    ] = ""
    target_language: Annotated[
        str,
        "such as de; default: taken from the names of the files",
    ] = ""
    augment: Annotated[
        bool,
        "change a share of the pairs in each epoch as [augment] says: capitals, typos and more",
    ] = False
    context: Annotated[
        int,
        "sentences before a source, from the lines before it, that the model learns to read along",
    ] = 0
    context_share: Annotated[
        float, "with context: the share of sources that have sentences before them"
    ] = 0.5
    tone: Annotated[
        bool,
        "find formal and informal address in the targets, and tag a share of the sources with it",
    ] = False
    variants: Annotated[
        tuple[str, ...],
        "the variant of each corpus, such as pt-BR, to tag a share of its sources with",
    ] = ()
    tag_share: Annotated[
        float, "with tone and variants: the share of sources that get their tag"
    ] = 0.5
    held_out: Annotated[
        int,
        "pairs set aside for validation when there are no validation files, at most 5%; 0 for none",
    ] = 1000
    max_length: Annotated[
        int,
        "tokens, the end included; pairs with a longer side are dropped",
    ] = 256
    block: Annotated[
        int,
        "tokens of each block that running text is split into (lm, mlm)",
    ] = 256
    flip: Annotated[
        bool,
        "show every other image mirrored (image)",
    ] = False
    time_masks: Annotated[
        int,
        "time masks of each recording in each epoch, of up to a tenth of its length (speech)",
    ] = 0
    band_masks: Annotated[
        int,
        "frequency masks of each recording in each epoch, of up to a third of the bands (speech)",
    ] = 0
    any_text: Annotated[
        bool,
        "source and target may be any text: no check compares languages, scripts or lengths",
    ] = False
    max_ratio: Annotated[
        float,
        "drop pairs whose lengths differ this many times more than is usual; 0 keeps them",
    ] = 3.0
    drop_duplicates: Annotated[
        bool,
        "keep only the first of several equal pairs",
    ] = True
    drop_copies: Annotated[
        bool,
        "drop pairs whose target is the source itself",
    ] = True
    drop_wrong_script: Annotated[
        bool,
        "drop pairs with a side that is not in the script of its language",
    ] = True
    drop_garbled: Annotated[
        bool,
        "drop pairs with characters of a wrong encoding, such as Ã¼ for ü",
    ] = True
    drop_markup: Annotated[
        bool,
        "drop pairs with HTML tags or entities on one side only",
    ] = True
    drop_swapped: Annotated[
        bool,
        "drop pairs whose source looks like the targets, and whose target like the sources",
    ] = True
    drop_shifted: Annotated[
        bool,
        "drop blocks of lines in which one side is shifted against the other",
    ] = True
    drop_overlap: Annotated[
        bool,
        "drop training pairs whose source also stands in the validation or test files",
    ] = True

    def __post_init__(self) -> None:
        if self.held_out < 0:
            raise OptionError(f"data.held_out is {self.held_out}; it must be 0 or more")
        if self.max_length < 2:
            raise OptionError(
                f"data.max_length is {self.max_length}; it must be at least 2, a token and the end"
            )
        if self.time_masks < 0 or self.band_masks < 0:
            raise OptionError("data.time_masks and data.band_masks cannot be negative")
        if self.block < 8:
            raise OptionError(f"data.block is {self.block}; it must be at least 8 tokens")
        if self.max_ratio and not self.max_ratio > 1:
            raise OptionError(
                f"data.max_ratio is {self.max_ratio}; it must be more than 1, or 0 to keep all"
            )
        if not all(0 < weight < float("inf") for weight in self.weights):
            raise OptionError(
                f"data.weights has {min(self.weights)}; every weight must be a number above 0"
            )

        self._check_steering()

    def _check_steering(self) -> None:
        if not 0 <= self.context <= MOST_CONTEXT:
            raise OptionError(
                f"data.context is {self.context}; it must lie between 0 and {MOST_CONTEXT}"
            )
        for name in ("context_share", "tag_share"):
            share = getattr(self, name)
            if not 0.0 < share <= 1.0:
                raise OptionError(f"data.{name} is {share}; it must be above 0 and at most 1")
        for variant in self.variants:
            if not _VARIANT.fullmatch(variant):
                raise OptionError(
                    f"data.variants has '{variant}'; a variant is a code such as pt-BR"
                )

    @property
    def steers(self) -> bool:
        """Whether sources say how to translate them."""
        return bool(self.context or self.tone or self.variants)

    def drops(self) -> frozenset[str]:
        """Return the kinds of finding (see check_report.py) that are dropped from training."""
        compares = not self.any_text
        optional = {
            "ratio": compares and self.max_ratio > 0,
            "copy": compares and self.drop_copies,
            "script": compares and self.drop_wrong_script,
            "garbled": self.drop_garbled,
            "markup": compares and self.drop_markup,
            "swapped": compares and self.drop_swapped,
            "shifted": compares and self.drop_shifted,
            "overlap": self.drop_overlap,
            "duplicate": self.drop_duplicates,
        }
        dropped = {kind for kind, is_dropped in optional.items() if is_dropped}
        return frozenset({"empty", "long", "huge"} | dropped)
