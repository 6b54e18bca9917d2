"""Can every architecture that `transformers` builds from a configuration be estimated?

    python benchmarks/architectures.py                                      all that train here: about ten minutes
    python benchmarks/architectures.py --draw 17 --seed 5 --write /tmp/drawn.py
    python benchmarks/own_code.py --models /tmp/drawn.py --methods device,touch

Each is made small: some of its configuration's numbers are replaced by `SMALL`. Those that then train two plain steps
are traced, in a child of their own, and layers of kinds that no profile knows are named. `--write` makes a file of
factories of some that are drawn, whose steps take more than 3 ms, for `own_code.py`: nothing was chosen with them.
"""

import argparse
import json
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "architectures.jsonl"
SECONDS_EACH, MOST_PARAMETERS, SHORTEST_STEP = 60, 5e7, 0.003
WIDTHS = ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "emb_dim", "embedding_size", "width")
DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "depth")
MORE_DEPTHS = ("num_encoder_layers", "num_decoder_layers", "layers", "block_count")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "heads")
MORE_HEADS = ("encoder_attention_heads", "decoder_attention_heads", "num_local_experts", "num_experts")
INNER = ("intermediate_size", "ffn_dim", "d_ff", "n_inner", "encoder_ffn_dim", "decoder_ffn_dim", "hidden_dim")
LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "ffn_hidden_size")
SMALL = {
    **dict.fromkeys(WIDTHS, 64),
    **dict.fromkeys((*DEPTHS, *MORE_DEPTHS), 2),
    **dict.fromkeys((*HEADS, *MORE_HEADS, "n_routed_experts"), 4),
    **dict.fromkeys((*INNER, *LENGTHS), 128),
    "num_key_value_heads": 2,
    "d_kv": 16,
    "head_dim": 16,
    "moe_intermediate_size": 64,
    "vocab_size": 500,
    "image_size": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
TASKS = {
    "causal": ("AutoModelForCausalLM", "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES"),
    "masked": ("AutoModelForMaskedLM", "MODEL_FOR_MASKED_LM_MAPPING_NAMES"),
    "seq": ("AutoModelForSeq2SeqLM", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES"),
    "image": ("AutoModelForImageClassification", "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES"),
    "audio": ("AutoModelForAudioClassification", "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES"),
}

Row = dict[str, Any]


def names() -> Iterator[tuple[str, str]]:
    from transformers.models.auto import modeling_auto

    for task, (_, mapping) in TASKS.items():
        yield from ((task, kind) for kind in getattr(modeling_auto, mapping))


def build(task: str, kind: str) -> tuple[Any, Row]:
    """A small model of this architecture, and a batch of two."""
    import torch
    import transformers

    torch.manual_seed(0)
    usual = transformers.AutoConfig.for_model(kind).to_dict()
    fitting = {name: value for name, value in SMALL.items() if type(usual.get(name)) is int}
    config = transformers.AutoConfig.for_model(kind, **fitting)
    config.num_labels = 5
    maker = getattr(transformers, TASKS[task][0])
    with torch.device("meta"):
        parameters = sum(p.numel() for p in maker.from_config(config).parameters())
    if parameters > MOST_PARAMETERS:
        raise MemoryError(f"{parameters:.1e} parameters")
    ids, labels = torch.randint(3, 400, (2, 32)), torch.tensor([0, 1])
    if task == "image":
        size = config.image_size if isinstance(getattr(config, "image_size", None), int) else 64
        inputs = {"pixel_values": torch.randn(2, getattr(config, "num_channels", 3), size, size), "labels": labels}
    elif task == "audio":
        inputs = {"input_values": torch.randn(2, 8000), "labels": labels}
    else:
        inputs = {"input_ids": ids, "labels": ids[:, :16].contiguous() if task == "seq" else ids}
    return maker.from_config(config), inputs


def tried(task: str, kind: str) -> Row:
    """Whether it trains by itself, and if so what Ampere makes of it."""
    import torch

    import ampere

    row: Row = {"task": task, "kind": kind}
    try:
        model, inputs = build(task, kind)
        optimizer = torch.optim.SGD(model.train().parameters(), 0.01)
        for _ in range(2):
            started = time.process_time()
            optimizer.zero_grad()
            model(**inputs).loss.backward()
            optimizer.step()
        row["seconds"] = time.process_time() - started
    except Exception as problem:
        return {**row, "refused": f"{type(problem).__name__}: {problem}"[:200]}
    try:
        network = ampere.trace(model, inputs)
        kinds = {layer.kind for layer in network.layers}
        return {**row, "layers": len(network.layers), "unknown": sorted(kinds & {"operation", "opaque"})}
    except Exception as problem:
        return {**row, "failed": f"{type(problem).__name__}: {problem}"[:400]}


def in_child(work: Callable[[], Row], otherwise: Row) -> Row:
    """What a forked child finds, which may crash or hang as it likes."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS_EACH)
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        os.write(write, json.dumps(work()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else otherwise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    import torch
    import transformers

    import ampere.api.models  # noqa: F401  (children begin with it)

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = (
        [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    )
    known = {(row["task"], row["kind"]) for row in rows}
    for task, kind in names():
        if (task, kind) not in known:
            lost = {"task": task, "kind": kind, "refused": f"no answer in {SECONDS_EACH} s"}
            rows.append(in_child(lambda task=task, kind=kind: tried(task, kind), lost))  # type: ignore[misc]
            with options.out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    trained = [row for row in rows if "refused" not in row]
    failed = [row for row in trained if "failed" in row]
    print(f"{len(rows)} architectures, {len(trained)} train when made small, {len(trained) - len(failed)} are traced")
    for row in failed:
        print(f"{row['task']} {row['kind']}: {row['failed']}")
    unknown = [row for row in trained if row.get("unknown")]
    print(f"{len(unknown)} have operations of no layer kind: {', '.join(sorted({row['kind'] for row in unknown}))}")
    if options.write:
        able = sorted(f"{r['task']} {r['kind']}" for r in trained if r["seconds"] > SHORTEST_STEP and "layers" in r)
        options.write.write_text(factories(random.Random(options.seed).sample(able, options.draw)))


def factories(drawn: list[str]) -> str:
    here = str(Path(__file__).parent)
    lines = [
        f'"""Drawn architectures."""\n\nimport sys\n\nsys.path.insert(0, {here!r})\n\nfrom architectures import build\n'
    ]
    for each in drawn:
        task, kind = each.split()
        lines.append(f"\n\ndef {task}_{kind.replace('-', '_')}():\n    return build({task!r}, {kind!r})\n")
    return "".join(lines)


if __name__ == "__main__":
    main()
