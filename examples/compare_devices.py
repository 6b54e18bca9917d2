"""One training on several devices: joules, time, kilowatt-hours, money and carbon before anybody trains.

The devices are simulated, so that this runs anywhere. Add "local" or "ssh://user@host" for real ones.
Needs: pip install 'ampere-energy[torch]'
"""

import ampere
from ampere.core import units

MODEL, DEVICES = "lenet5", ("simulated:phone-android", "simulated:xavier", "simulated:server")


def main() -> None:
    profiles = []
    for name in DEVICES:
        with ampere.device(name) as device:
            profiles.append(ampere.profile(MODEL, device=device, seconds=30).profile)
            estimate = ampere.estimate(
                MODEL,
                device=device,
                extend=False,
                epochs=10,
                samples=60_000,
                evaluate_every="1epoch",
                evaluation_samples=10_000,
                price="0.30EUR/kWh",
                grid=["DE", "FR"],
            )
        run = estimate.run
        assert run is not None
        low, high = map(units.joules, run.interval)
        carbon = ", ".join(f"{grid.carbon(run.kwh)} in {grid.region}" for grid in run.tariff.grids)
        print(f"{name}: {units.joules(run.joules)} ({low} to {high}), {units.seconds(run.seconds)}")
        print(f"  {run.kwh:.3g} kWh, {run.tariff.price.money(run.kwh)}, CO2e {carbon}")
        for part in run.parts:
            print(f"  {part.name}: {units.joules(part.joules)}")
    print(ampere.compare(MODEL, profiles=profiles).sentence)


if __name__ == "__main__":
    main()
