"""Draw the picture of docs/start.md by its lines, on irises: `python docs/figures/draw_start.py`."""

import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import pandas as pd
from sklearn.datasets import load_iris

from wiseale import AutoEncoder, LatentMapDisplay

irises = load_iris(as_frame=True)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "measurements.csv"
    irises.data.assign(species=irises.target_names[irises.target]).to_csv(path, index=False)

    X = pd.read_csv(path)
    species = X.pop("species")
    est = AutoEncoder(latent_dim=2, random_state=0).fit(X)
    display = LatentMapDisplay.from_estimator(est, X, species)

display.figure_.savefig(Path(__file__).parent / "start_map.png", dpi=130, metadata={"Software": None})
print(est)
