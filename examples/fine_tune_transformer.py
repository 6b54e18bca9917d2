"""Fine-tune a small Hugging Face model inside an energy budget.

    python fine_tune_transformer.py                             a tiny model with random weights, nothing is downloaded
    python fine_tune_transformer.py prajjwal1/bert-tiny 500     a model of the Hub, and 500 J

Needs: pip install 'ampere-energy[transformers]'
"""

import sys

import torch
import transformers

import ampere
from ampere.integrations.transformers import EnergyBudget

NAME = sys.argv[1] if len(sys.argv) > 1 else ""
JOULES = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
WORDS, LENGTH, EXAMPLES = 500, 16, 2000


def pretrained() -> transformers.PreTrainedModel:
    if NAME:
        return transformers.AutoModelForSequenceClassification.from_pretrained(NAME, num_labels=2)
    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=2
    )
    return transformers.BertForSequenceClassification(config)


def examples() -> list[dict[str, torch.Tensor]]:
    """A task that can be learnt: is the first word from the second half of the vocabulary? Use your own data here."""
    words = torch.randint(1, WORDS, (EXAMPLES, LENGTH), generator=torch.Generator().manual_seed(0))
    return [{"input_ids": row, "labels": (row[0] >= WORDS // 2).long()} for row in words]


def main() -> None:
    if not NAME:
        torch.set_num_threads(1)  # so small a model: more threads wait for each other, and waiting costs joules
    model = pretrained()
    model.base_model.embeddings.requires_grad_(False)  # fine-tuning: the embeddings stay as they are
    arguments = transformers.TrainingArguments(
        output_dir="fine-tuned",
        per_device_train_batch_size=16,
        num_train_epochs=20,
        logging_steps=20,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(model, arguments, train_dataset=examples())
    budget = ampere.Budget(joules=JOULES, reserve=0.05 * JOULES)
    EnergyBudget(budget).watch(trainer)
    trainer.train()
    trainer.save_model()
    print(budget.summary())


if __name__ == "__main__":
    main()
