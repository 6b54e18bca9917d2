"""A Lightning training that ends before its joules do, and whose checkpoint knows what was spent.

Needs: pip install 'ampere-energy[lightning]'
"""

import lightning
import torch
from torch import nn

import ampere
from ampere.integrations.lightning import EnergyBudget


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> torch.Tensor:
        images, labels = batch
        return nn.functional.cross_entropy(self.net(images), labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters())


def main() -> None:
    images, labels = torch.randn(4000, 1, 28, 28), torch.randint(10, (4000,))  # your data
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch_size=16, shuffle=True)
    budget = ampere.Budget(joules=1.0)
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=100,
        callbacks=[EnergyBudget(budget)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), loader)
    trainer.save_checkpoint("classifier.ckpt")
    print(budget.summary())


if __name__ == "__main__":
    main()
