"""Remove channels until training costs half, keep the smaller model in a file, and load it again.

The device is simulated, so that this runs anywhere. Replace it by "local" for this machine.
Needs: pip install 'ampere-energy[torch,prune]'
"""

import torch
from torch import nn

import ampere


def main() -> None:
    loaded = ampere.load_model("cnn5")  # or ampere.load_model("file.py:function")
    pruned = ampere.prune(loaded, loaded.inputs, "50%", device="simulated:server", seconds=30)
    print(f"{pruned.share:.0%} of the joules are left")
    for layer in pruned.layers():
        print(f"  {layer.name}: {layer.channels_before} -> {layer.channels_after} channels")
    for path in pruned.save("pruned.json"):
        print(f"wrote {path}")

    model = ampere.load_pruned("pruned.json", ampere.load_model("cnn5").model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (images,) = loaded.inputs
    labels = torch.randint(model(images).shape[1], (len(images),))
    for _ in range(3):  # it is trained like any other
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained {sum(p.numel() for p in model.parameters()):,} parameters")


if __name__ == "__main__":
    main()
