"""Tiny random models of transformers, read by us, give the same logits, with padding and step by
step with the cache, and the same tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from references import WHISPER, both_ways, close, randomised

from dragoman.decoding.search import search
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem

transformers = pytest.importorskip("transformers", reason="needs transformers")

BART = {
    "vocab_size": 50,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 40,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "bos_token_id": 0,
    "decoder_start_token_id": 2,
}
T5 = {
    "vocab_size": 50,
    "d_model": 16,
    "d_kv": 6,
    "d_ff": 24,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 3,
}
LLAMA = {
    "vocab_size": 50,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
STRETCHED = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
    "rope_theta": 500.0,
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "marian": ("Marian", BART | {"scale_embedding": True, "activation_function": "swish"}),
    "marian apart": (
        "Marian",
        BART
        | {"vocab_size": 60, "decoder_vocab_size": 50, "share_encoder_decoder_embeddings": False},
    ),
    "pegasus": ("Pegasus", BART | {"scale_embedding": True}),
    "bart": ("Bart", BART),
    "mbart": ("MBart", BART | {"scale_embedding": True}),
    "m2m_100": ("M2M100", BART),
    "t5": ("T5", T5),
    "t5 gated": ("T5", T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "gpt2": (
        "GPT2",
        {"vocab_size": 50, "n_embd": 16, "n_layer": 3, "n_head": 4, "n_positions": 32},
    ),
    "llama": ("Llama", LLAMA),
    "llama stretched": (
        "Llama",
        LLAMA | {"rope_parameters": STRETCHED, "tie_word_embeddings": True},
    ),
    "mistral": ("Mistral", LLAMA | {"sliding_window": 32}),
    "qwen2": ("Qwen2", LLAMA | {"tie_word_embeddings": True}),
    "falcon": (
        "Falcon",
        {
            "vocab_size": 50,
            "hidden_size": 16,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "max_position_embeddings": 64,
        },
    ),
}
CLASSES = {"Marian": "MarianMTModel", "GPT2": "GPT2LMHeadModel", "Llama": "LlamaForCausalLM"} | {
    kind: f"{kind}ForCausalLM" for kind in ("Mistral", "Qwen2", "Falcon")
}


def reference(name: str) -> Any:
    kind, fields = (MODELS | {"whisper": ("Whisper", WHISPER)})[name]
    config = getattr(transformers, f"{kind}Config")(**fields)
    torch.manual_seed(0)
    return randomised(
        getattr(transformers, CLASSES.get(kind, f"{kind}ForConditionalGeneration"))(config)
    )


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_the_same_logits(name: str, tmp_path: Path) -> None:
    theirs = reference(name)
    source, target = random_tokens(3, 7), random_tokens(3, 6)
    lengths = torch.tensor([7, 4, 2])
    mask = (torch.arange(7) < lengths[:, None]).long()
    for model in both_ways(tmp_path, theirs):
        if model.config.encoder_layers:
            expected = theirs(
                input_ids=source, attention_mask=mask, decoder_input_ids=target
            ).logits
        else:
            expected = theirs(input_ids=target).logits
        close(model(source, target, lengths), expected)
        state = model.start(source, lengths)
        steps = [model.step(target[:, i : i + 1], state) for i in range(6)]
        close(torch.cat(steps, dim=1), expected)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("name", [*MODELS, "whisper"])
@torch.no_grad()
def test_the_same_tokens(name: str, beam: int, tmp_path: Path) -> None:
    """All of the same length: how many hypotheses go on beside those that ended is a matter of
    taste."""
    theirs = reference(name)
    model = both_ways(tmp_path, theirs)[0]
    source = (
        torch.randn(3, 8, 20)
        if name == "whisper"
        else random_tokens(3, 7).index_fill(1, torch.tensor(0), 5)
    )
    found = transformers.GenerationMixin.generate(
        theirs,
        source,
        num_beams=beam,
        do_sample=False,
        length_penalty=0.0,
        max_new_tokens=8,
        suppress_tokens=[2],
        begin_suppress_tokens=None,
        decoder_start_token_id=5,
        eos_token_id=2,
        pad_token_id=1,
        forced_eos_token_id=None,
        use_cache=False,  # theirs miscounts the layers of a T5 whose decoder has more of them
    )[:, 1:]

    def step(tokens: torch.Tensor, state: Any) -> torch.Tensor:
        return model.step(tokens, state).index_fill(-1, torch.tensor(2), -torch.inf)

    prompts = [] if model.config.encoder_layers else source[:, 1:].tolist()
    limits = torch.full((3,), found.size(1))
    problem = Problem(step, model.start(source), limits, start=5, end=2, prefixes=prompts)
    ours = search(problem, SearchOptions(beam=beam, alpha=0.0))
    assert [list(one[0].tokens) for one in ours] == found.tolist()


@pytest.mark.parametrize("name", ["gpt2", "bart"])
@torch.no_grad()
def test_a_folder_of_the_stack_alone(name: str, tmp_path: Path) -> None:
    """As GPT-2 and BART lie on their makers' pages: their output layer is the embedding, which
    they have."""
    theirs = reference(name)
    if name == "bart":
        theirs.final_logits_bias.zero_()
    source, target = random_tokens(2, 7), random_tokens(2, 6)
    given = (
        {"input_ids": source, "decoder_input_ids": target}
        if name == "bart"
        else {"input_ids": target}
    )
    for model in both_ways(tmp_path, theirs.base_model):
        close(model(source, target), theirs(**given).logits)


def random_tokens(rows: int, length: int) -> torch.Tensor:
    return torch.randint(
        3, 50, (rows, length), generator=torch.Generator().manual_seed(rows * length)
    )
