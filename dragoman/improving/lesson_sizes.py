"""How large the trainings of an improvement are: batches, steps and limits, from the text that
there is and the pace that was measured. Knows numbers and options; trains nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.config import merge
from dragoman.folder.description import load_description
from dragoman.improving.improve_budget import TOKENS_A_PAIR, Allotment, steps_within
from dragoman.improving.improve_plan import ENOUGH_PASSES, PARENT
from dragoman.improving.improve_training import VALID_SENTENCES
from dragoman.improving.improve_workshop import Workshop
from dragoman.improving.mixed_text import tags
from dragoman.runtimes.device import pick_device
from dragoman.training.presets import automatic, named

TUNING_RATE = 5e-4
_LITTLE = 200_000  # pairs, up to which R-Drop and much dropout pay
_MOST_PASSES = 60.0
_LEAST_PASSES = 25.0  # over our own text, for a wider model than a CPU usually trains


def steps_of(shop: Workshop, minutes: float, batch: int, pairs: int, r_drop: bool) -> int:
    """The steps of a training: as many as the user named, or as fit."""
    if shop.inputs.options.steps:
        return shop.inputs.options.steps
    allotment = Allotment(
        minutes,
        batch,
        r_drop,
        sentences=min(VALID_SENTENCES, len(shop.valid)),
        judged=len(shop.valid),
        pairs=pairs,
        passes=_MOST_PASSES,
    )
    return steps_within(allotment, shop.pace)


def tuning_settings(shop: Workshop, minutes: float, pairs: int = 0) -> dict[str, Any]:
    """Batch and steps of a training that goes on from a model."""
    pairs = pairs or shop.count("pairs")
    batch = batch_tokens(shop, pairs)
    steps = steps_of(shop, minutes, batch, pairs, r_drop_of(shop) > 0)
    return {"batch": batch, "steps": steps}


def tuning_tables(shop: Workshop, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a training that goes on: with little text, more noise against learning it by
    heart."""
    tables: dict[str, Any] = {"training": {"batch_tokens": settings["batch"]}}
    if _copies(shop):
        tables["data"] = {"augment": True}
    if r_drop_of(shop):
        tables["training"]["r_drop"] = r_drop_of(shop)
        tables["model"] = {"dropout": 0.3}
    if not shop.inputs.start:
        tables = merge({"tokenizer": {"tags": tags(shop)}}, tables)
    return tables


def r_drop_of(shop: Workshop) -> float:
    """How strongly two passes must agree; 0 where there is much text or little time."""
    passes = passes_of(shop)
    has_time = passes is None or passes >= ENOUGH_PASSES
    return shop.inputs.options.r_drop if has_time and shop.count("pairs") < _LITTLE else 0.0


def passes_of(shop: Workshop) -> float | None:
    """How often our own text could be read in all the minutes, at the pace that was measured; None
    where steps were named instead of minutes."""
    if shop.inputs.options.steps or not shop.count("pairs"):
        return None
    return _passes(shop, shop.pace.token)


def is_worth_its_width(shop: Workshop, token: float) -> bool:
    """Whether a wider model, which takes so many seconds for a token, still reads our own text
    often enough in all the minutes."""
    return _passes(shop, token) >= _LEAST_PASSES


def is_worth_a_trial(
    shop: Workshop, token: float, narrow: Mapping[str, Any], wide: Mapping[str, Any]
) -> bool:
    """Whether the wide shape may be worth it, if the narrow one takes so many seconds for a token:
    that a wider model computes up to twice as many weights a second is taken into account."""
    ratio = _layer_weights(wide) / _layer_weights(narrow)
    return is_worth_its_width(shop, token * max(1.0, ratio / 2))


def shapes_by_width(shop: Workshop) -> list[dict[str, Any]]:
    """The shapes that a model from text may have, the narrowest first: the one that `auto` picks
    for this device, and on a CPU those up to the one that it picks for a GPU. Where other text has
    to be read as well, or the user chose, there is no other."""
    options = shop.inputs.options
    pairs = pairs_in_all(shop)
    least = automatic(pairs, device_kind(shop) == "cuda")[0]["model"]
    most = automatic(pairs, True)[0]["model"]
    tables = shop.inputs.tables
    is_settled = "model" in tables or tables.get("preset", "auto") != "auto" or options.steps
    if least == most or is_settled or options.target_text or options.related:
        return [least]
    return [least, _between(least, most), most]


def _layer_weights(shape: Mapping[str, Any]) -> int:
    """About how many weights the layers have."""
    width = int(shape["d_model"])
    attention = 4 * width**2
    feedforward = 2 * width * int(shape["d_ff"])
    encoder = int(shape["encoder_layers"]) * (attention + feedforward)
    decoder = int(shape["decoder_layers"]) * (2 * attention + feedforward)
    return encoder + decoder


def _between(least: Mapping[str, Any], most: Mapping[str, Any]) -> dict[str, Any]:
    """The shape half-way between two, with heads as wide as those of the narrower one."""
    sizes = ("d_model", "d_ff", "encoder_layers", "decoder_layers")
    shape = {**least, **{name: (least[name] + most[name]) // 2 for name in sizes}}
    shape["n_heads"] = shape["d_model"] * least["n_heads"] // least["d_model"]
    return shape


def _passes(shop: Workshop, token: float) -> float:
    tokens = TOKENS_A_PAIR * shop.count("pairs")
    return 60 * shop.inputs.options.minutes / max(1e-12, token) / tokens


def limit_of(shop: Workshop, minutes: float) -> float:
    """Seconds after which a training ends although it has steps left: half as long again as was
    planned, and never beyond the whole budget. 0 where steps were named instead of minutes."""
    options = shop.inputs.options
    if options.steps:
        return 0.0
    left = 60 * options.minutes - shop.journal.seconds
    return max(1.0, min(left, 90 * minutes + 30))


def pairs_in_all(shop: Workshop) -> int:
    """Our own pairs and those of related languages."""
    return shop.count("pairs") + shop.count("related")


def batch_tokens(shop: Workshop, pairs: int) -> int:
    """The tokens of a step: as the user named, or as the preset has it."""
    chosen = shop.inputs.training.get("batch_tokens")
    if chosen:
        return int(chosen)
    preset = str(shop.inputs.tables.get("preset", "auto"))
    if preset == "auto":
        # There may be text of one language alone.
        tables, _ = automatic(max(1, pairs), device_kind(shop) == "cuda")
    else:
        tables = named(preset)
    return int(tables["training"]["batch_tokens"])


def knows_both(shop: Workshop) -> bool:
    """Whether the first model was trained in both directions."""
    parent = shop.journal.outcome(PARENT)
    return parent is not None and bool(shop.journal.settings(PARENT, {}).get("both"))


def _copies(shop: Workshop) -> bool:
    """Whether the best model has tokens for what must be copied; augmentation teaches them."""
    model = shop.model()
    return model is not None and bool(load_description(model)[1].copies)


def device_kind(shop: Workshop) -> str:
    """cpu or cuda."""
    return pick_device(shop.inputs.device).type
