"""The test set of an improvement: translated once, in the end, by the first model and the last."""

from __future__ import annotations

from dragoman.improving.improve_journal import Outcome
from dragoman.improving.improve_workshop import Workshop, read_tsv, translate
from dragoman.tasks.evaluate import Scoring, compare, score, tokenize_for

TEST = "test"


def score_test(shop: Workshop) -> Outcome | None:
    """BLEU of the first model and of the last; None if there is no test set with references."""
    pairs = list(read_tsv(shop.test_file))
    if not pairs or not all(target for _, target in pairs):
        return None
    made = [one.model for one in shop.journal.done if one.kept and one.model]
    if not made:
        return None
    sources = [source for source, _ in pairs]
    references = [target for _, target in pairs]
    scoring = Scoring(tokenize_for(shop.languages[1]))
    last = translate(shop.path(made[-1]), sources, shop.inputs.device)
    found = score(last, references, scoring)
    numbers = {"bleu": found.bleu.value, "chrf": found.chrf.value}
    if made[0] == made[-1]:
        return Outcome(TEST, after=found.bleu.value, numbers=numbers)
    first = translate(shop.path(made[0]), sources, shop.inputs.device)
    bleu = compare(last, first, references, scoring).bleu
    return Outcome(TEST, before=bleu.other, after=bleu.value, p_value=bleu.p_value, numbers=numbers)
