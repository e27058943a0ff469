# Two commands for a fresh machine: `make quickstart` and `make test`.
# Both make .venv from the pinned versions in constraints.txt. Python 3.11 or newer.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.installed

.PHONY: quickstart test lint bench clean

quickstart: $(SETUP)
	$(BIN)/spikein run configs/quickstart.yaml

test: $(SETUP)
	$(BIN)/python -m pytest

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(SETUP)
	$(BIN)/python -m scripts.bench.scoring
	$(BIN)/python -m scripts.bench.training
	$(BIN)/python -m scripts.bench.inject
	$(BIN)/python -m scripts.bench.verifying

$(SETUP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip --constraint constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(SETUP)

clean:
	rm -rf $(VENV) build *.egg-info
