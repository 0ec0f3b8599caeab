"""Writes a random Qwen3 of 0.1 M parameters, in two shards, into the folder named by its argument.

Runs inside the LLaMA-Factory environment. Small enough for 50 ms a step on one slow core; two shards,
so that the weight loader shows its bar as it does for every real model.
"""

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

PAD, TURN, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token for each byte, and the three marks that the qwen3 template needs."""
    symbols = [PAD, TURN, END, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(
        models.BPE(vocab={symbol: number for number, symbol in enumerate(symbols)}, merges=[])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[TURN, END],
        model_max_length=1024,
    )


def main(folder: Path) -> None:
    """Make tokenizer and weights; the same seed gives the same weights."""
    tokenizer = byte_tokenizer()
    shape = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(7)
    model = Qwen3ForCausalLM(shape)
    size = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder, max_shard_size=size * 6 // 10)
    shards = sorted(folder.glob("model-*.safetensors"))
    if len(shards) != 2:
        sys.exit(f"expected two shards in {folder}, not {[shard.name for shard in shards]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
