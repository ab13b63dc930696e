"""Folders as transformers saves them: tiny random models, each with a real tokeniser learnt from
a few lines."""

from __future__ import annotations

import io
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers
from references import randomised
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "dog",
    "runs",
    "fast",
    "over",
    "hills",
    "der",
    "Hund",
    "lief",
    "schnell",
    "Katze",
    "saß",
    "auf",
    "Matte",
    "klein",
    "groß",
    "rot",
    "blau",
    "to",
]
PREFIX = "translate English to German: "
SIZES: dict[str, Any] = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 64,
}
ENDS = {
    "marian": 3.7,
    "m2m_100": 1.4,
    "mbart": 1.4,
    "mbart50": 1.0,
    "bart": 4.0,
    "t5": 3.0,
}  # how much the end is helped
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
FAIRSEQ: dict[str, Any] = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}


def lines(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(WORDS) for _ in range(draw.randint(3, 9))) + "." for _ in range(count)
    ]


@cache
def pieces(kind: str = "bpe") -> bytes:
    model = io.BytesIO()
    text = iter(lines(300))
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=text,
        model_writer=model,
        vocab_size=70,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


def table(first: list[str], last: list[str]) -> dict[str, int]:
    """Ids of their own for the pieces, between some others."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=pieces())
    own = [processor.id_to_piece(token) for token in range(3, processor.get_piece_size())]
    return {piece: place for place, piece in enumerate([*first, *own, *last])}


def unigrams(first: list[str]) -> list[tuple[str, float]]:
    """Pieces and scores, as tokenizer.json has them."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=pieces("unigram"))
    own = range(3, processor.get_piece_size())
    return [(piece, 0.0) for piece in first] + [
        (processor.id_to_piece(token), processor.get_score(token)) for token in own
    ]


def bytes_of(kind: str) -> Any:
    """BPE over bytes, as BART and GPT-2 have it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if kind == "bart" else ["<|endoftext|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        lines(300),
        trainers.BpeTrainer(
            vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        ),
    )
    if kind == "bart":
        tokenizer.post_processor = processors.RobertaProcessing(
            ("</s>", 2), ("<s>", 0), add_prefix_space=False
        )
        named = {
            "bos_token": "<s>",
            "eos_token": "</s>",
            "pad_token": "<pad>",
            "mask_token": "<mask>",
        }
    else:
        named = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)


def tokenizer_of(kind: str, folder: Path) -> Any:
    """Saved into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "some.spm").write_bytes(pieces())
    found: Any
    if kind == "marian":
        (folder / "ids.json").write_text(
            json.dumps(table(["</s>", "<unk>"], [">>deu<<", "<pad>"])), encoding="utf-8"
        )
        spm = str(folder / "some.spm")
        found = transformers.MarianTokenizer(spm, spm, str(folder / "ids.json"))
    elif kind == "m2m_100":
        (folder / "ids.json").write_text(json.dumps(table(SPECIAL, [])), encoding="utf-8")
        found = transformers.M2M100Tokenizer(
            str(folder / "ids.json"), str(folder / "some.spm"), src_lang="en", tgt_lang="de"
        )
    elif kind.startswith("mbart"):
        name = "MBart50Tokenizer" if kind == "mbart50" else "MBartTokenizer"
        found = getattr(transformers, name)(
            vocab=unigrams(SPECIAL), src_lang="en_XX", tgt_lang="de_DE"
        )
    elif kind == "nllb":
        vocabulary = {piece: place for place, (piece, _) in enumerate(unigrams(SPECIAL))}
        found = transformers.NllbTokenizer(
            vocab=vocabulary, merges=[], src_lang="eng_Latn", tgt_lang="twi_Latn"
        )
    elif kind == "t5":
        found = transformers.T5Tokenizer(vocab=unigrams(["<pad>", "</s>", "<unk>"]), extra_ids=3)
    else:
        found = bytes_of(kind)
    found.save_pretrained(folder)
    for name in ("some.spm", "ids.json"):
        (folder / name).unlink(missing_ok=True)
    return found


def model_of(kind: str, size: int, folder: Path, **more: Any) -> Any:
    """A model with as many tokens as the tokeniser, saved beside it; a language model where the
    kind is one."""
    torch.manual_seed(0)
    model: Any
    config: Any
    sizes: dict[str, Any]
    common: dict[str, Any] = {"vocab_size": size, **more}
    generation: dict[str, Any] = {"forced_eos_token_id": None}  # which would end what is cut
    if kind == "marian":
        last = size - 1
        common |= SIZES | {
            "pad_token_id": last,
            "eos_token_id": 0,
            "decoder_start_token_id": last,
            "bos_token_id": None,
            "activation_function": "swish",
        }
        generation["bad_words_ids"] = [[last]]
        model = transformers.MarianMTModel(transformers.MarianConfig(**common))
    elif kind in ("m2m_100", "nllb"):
        config = transformers.M2M100Config(**common, **SIZES, **FAIRSEQ, decoder_start_token_id=2)
        model = transformers.M2M100ForConditionalGeneration(config)
    elif kind.startswith("mbart"):
        config = transformers.MBartConfig(**common, **SIZES, **FAIRSEQ, decoder_start_token_id=2)
        model = transformers.MBartForConditionalGeneration(config)
    elif kind == "bart":
        generation["forced_bos_token_id"] = 0
        config = transformers.BartConfig(**common, **SIZES, **FAIRSEQ, decoder_start_token_id=2)
        model = transformers.BartForConditionalGeneration(config)
    elif kind == "t5":
        sizes = {
            "d_model": 16,
            "d_kv": 6,
            "d_ff": 24,
            "num_layers": 2,
            "num_heads": 3,
            "decoder_start_token_id": 0,
        }
        model = transformers.T5ForConditionalGeneration(
            transformers.T5Config(**common, **sizes, pad_token_id=0, eos_token_id=1)
        )
    elif kind == "gpt2":
        sizes = {
            "n_embd": 16,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            "bos_token_id": 0,
            "eos_token_id": 0,
        }
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**common, **sizes))
    else:
        sizes = {
            "hidden_size": 16,
            "intermediate_size": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 64,
            "bos_token_id": 0,
            "eos_token_id": 0,
        }
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**common, **sizes))
    # So that one token hardly follows from the one before, and outputs differ.
    with torch.no_grad():
        for weight in randomised(model).parameters():
            weight.mul_(3.0 if weight.dim() > 1 and weight.requires_grad else 1.0)
        if hasattr(model, "final_logits_bias"):  # some are to come to an end
            model.final_logits_bias[..., model.config.eos_token_id] += ENDS[kind]
        else:
            model.get_input_embeddings().weight[model.config.eos_token_id] *= ENDS.get(kind, 1.0)
    for name, value in generation.items():
        setattr(model.generation_config, name, value)
    model.save_pretrained(folder)
    return model
