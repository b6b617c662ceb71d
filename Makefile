# Everything a fresh machine needs: each target makes .venv and installs through constraints.txt first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# On Linux the package index serves torch with several gigabytes of CUDA; `make setup CPU=1` takes the build without it.
TORCH := $(if $(CPU),--extra-index-url https://download.pytorch.org/whl/cpu)

.PHONY: setup demo test long check lint types slow docs bench results zoo torture fuzz lock dist clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt $(TORCH) -e '.[dev]'
	@touch $@

setup: $(STAMP)

demo: setup
	$(BIN)/wiseale demo

test: setup
	$(BIN)/python -m pytest -n 2

# Tests that start, kill and resume whole processes.
long: setup
	$(BIN)/python -m pytest -n 2 -m long

slow: setup
	$(BIN)/python -m pytest -m slow

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

check: lint types test

# The site, with every tutorial run (again only if its script changed) and every link checked, all of it offline.
docs: setup
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	@echo docs/_build/html/index.html

bench: setup
	$(BIN)/python -m bench all

# docs/results and the tables of docs/choosing.md and docs/measures.md again; FROM: directories of `wiseale reproduce` to add first.
results: setup
	$(BIN)/python -m docs.pages $(FROM)

# src/wiseale/zoo again from finished runs of the zoo's datasets: make zoo FROM="RUN …"
zoo: setup
	$(BIN)/python -m bench.zoo $(FROM)

# Kills, loss of power, failing disks, damaged and hostile files; bounded by MINUTES, continued by the next call, figures at the end.
MINUTES ?= 60
torture: setup
	$(BIN)/python -m torture --minutes $(MINUTES) --table torture/results.csv

# Inputs for every reader, made up by a fuzzer that follows the lines they reach.
fuzz: setup
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[fuzz]'
	$(BIN)/python -m torture.fuzz --minutes $(MINUTES)

# requirements.lock again: the tested versions with the SHA-256 of each file, for releases.
lock: setup
	$(BIN)/python -m release.lock

# dist/: sdist and wheel of the commit, built twice; a difference is an error. docs/releasing.md is the checklist.
dist: setup
	$(BIN)/python -m release.dist

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache docs/_build docs/gallery
