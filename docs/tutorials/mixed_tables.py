"""
A table with words and missing cells
====================================

Codes, filled cells, strange cells and new rows, in the table's own columns.

The table is the cars of vega_datasets: 406 models of the years 1970 to 1982, with names, dates, an origin, and cells
that nobody filled in.
"""

# %%
# Load it. Nothing is prepared: no encoder for the words, no imputer for the holes, no scaler.

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from vega_datasets import data

from wiseale import AutoEncoder, LatentMapDisplay

cars = pd.DataFrame(json.loads(data.cars.raw()))
print(cars.dtypes.to_string())
print("missing:", cars.isna().sum()[lambda counts: counts > 0].to_dict())

# %%
# Every column gets a kind: numbers, categories, counts, columns of two values. A fitted estimator says what it took
# each column for, and ``fit`` warns of those that it does not learn from: here it would be the names, which hardly
# repeat, and the dates, so they are ignored on purpose. Where the guess is not yours, say so too: the number of
# cylinders is 3, 4, 5, 6 or 8, and an engine of 5.2 cylinders does not exist, so it becomes a category. (40 epochs keep
# this page quick; without ``max_epochs`` training goes on as long as it helps.)

kinds = {"Cylinders": "category", "Name": "ignore", "Year": "ignore"}
settings = {"latent_dim": 3, "max_epochs": 40, "lr": 2e-3, "random_state": 0, "column_kinds": kinds}
est = AutoEncoder(**settings).fit(cars)
print(est)
codes = est.transform(cars)  # (406, 3): every car has a code, whichever of its cells are missing

# %%
# The map, in the two units of the code that vary most.

LatentMapDisplay.from_estimator(est, cars, cars["Origin"])
plt.show()

# %%
# **Missing cells.** ``impute`` fills them and leaves everything else as it is, columns it does not know included. With
# ``n_draws`` it draws from what the rest of the row allows, again and again: the spread says how sure the guess is.

holes = cars["Horsepower"].isna()
filled = est.impute(cars)
draws = np.stack([table.loc[holes, "Horsepower"] for table in est.impute(cars, n_draws=20)])
guesses = filled.loc[holes, ["Name", "Horsepower"]].assign(give_or_take=draws.std(0).round(1))
print(guesses.to_string(index=False))

# %%
# Are such guesses any good? Hide a fifth of the cells of three columns, fill them, and compare with what needs no
# model: the column's mean and its most frequent value.

hidden = np.random.default_rng(0).random((len(cars), 3)) < 0.2
columns = ["Horsepower", "Weight_in_lbs", "Origin"]
test = cars.copy()
test[columns] = test[columns].mask(hidden)
answer = AutoEncoder(**settings).fit(test).impute(test)
for name, rows in zip(columns, (hidden & cars[columns].notna().to_numpy()).T, strict=True):
    truth, guess = cars.loc[rows, name], answer.loc[rows, name]
    if name == "Origin":
        simple = (truth == test[name].mode()[0]).mean()
        print(f"{name}: {(truth == guess).mean():.0%} of hidden cells right, most frequent value {simple:.0%}")
    else:
        error, simple = ((truth - one).pow(2).mean() ** 0.5 for one in (guess, test[name].mean()))
        print(f"{name}: hidden cells are off by {error:.1f}, the column's mean by {simple:.1f}")

# %%
# **Which cell is strange?** ``reconstruction_error`` with ``per_column`` says how badly each cell comes back: squared,
# in standard deviations, for numbers; 1 − p for categories. Here somebody loses a digit of a weight.

typo = cars.copy()
typo.loc[100, "Weight_in_lbs"] //= 10
errors = est.reconstruction_error(typo, per_column=True)
row, column = errors.stack().idxmax()
print(f"strangest cell: row {row}, {column} = {typo.loc[row, column]} ({typo.loc[row, 'Name']})")

# %%
# **New rows** come back as a frame with the columns, types and categories of the table. ``noise=True`` draws each cell
# from its distribution; without it a row is what its code expects.

new = est.sample(500, noise=True)
print(new.head(3).to_string(index=False))
print(
    "share of cars from the USA:",
    f"data {(cars['Origin'] == 'USA').mean():.2f}, samples {(new['Origin'] == 'USA').mean():.2f}",
)
correlations = [table[["Horsepower", "Miles_per_Gallon"]].corr().iloc[0, 1] for table in (cars, new)]
print("correlation of power and range:", "data {:.2f}, samples {:.2f}".format(*correlations))

# %%
# A value that training has not seen is an error, which names the cell. If it should not be, ``unseen="missing"`` treats
# it as a missing cell, and ``unseen="other"`` as a level of its own, learned from the rare levels of the column.

imported = cars.assign(Origin="Sweden")
try:
    est.transform(imported)
except ValueError as error:
    print("refused:", error)
assert np.isfinite(est.set_params(unseen="missing").transform(imported)).all()

# %%
# The command line does the same with files, block by block, however long they are:
#
#     wiseale train cars.csv --columns Cylinders:category --out run
#     wiseale impute run cars.csv -o filled.csv
#     wiseale sample run -n 1000 -o new.csv --noise
#     wiseale evaluate run
#     wiseale report run
#
# The report shows how well each column comes back, ranks the strange cells and draws every column.

cars.to_csv("cars.csv", index=False)
est.save("cars-model")
pd.testing.assert_frame_equal(est.impute(cars), filled)
