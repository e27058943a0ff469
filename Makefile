# Two commands for a fresh machine: `make quickstart` and `make test`.
# All make .venv from the pinned versions in constraints.txt. Python 3.11 or newer.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Processes that share out the files of tests, one more than cores, since some tests wait; each takes 1 to 2 GiB.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
# What running needs, and what developing needs beside it.
RUNTIME := $(VENV)/.installed-runtime
SETUP := $(VENV)/.installed

# Without compiled files beside the sources, each of the suite's processes compiles the project again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: quickstart test test-quick durations lint site bench bench-bundle clean

quickstart: $(RUNTIME)
	@$(BIN)/spikein run configs/quickstart.yaml

test: $(SETUP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Half a minute on two cores, on all that there are. It leaves out the tests marked slow (training,
# processes), and those of tests/not_quick.txt: more than 0.05 s each, a browser, or any other process.
test-quick: $(SETUP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow and not thorough"

# All tests in one process, as timing requires; writes tests/not_quick.txt and prints the slowest ten.
durations: $(SETUP)
	$(BIN)/python -m pytest -p tests.costs --durations=10

# The documentation as pages, into site/. A warning is an error; nothing is loaded from a network.
site: $(SETUP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m scripts.prose_check

bench: $(SETUP)
	$(BIN)/python -m scripts.bench.scoring
	$(BIN)/python -m scripts.bench.training
	$(BIN)/python -m scripts.bench.inject
	$(BIN)/python -m scripts.bench.verifying
	$(BIN)/python -m scripts.bench.study

# The benchmark from nothing: a quarter of an hour on two cores. SECRET is the seed of the held-out models, by default a
# random one; it is also in bench.labels, which stays with the organiser.
bench-bundle: $(RUNTIME)
	@SECRET=$${SECRET:-$$($(BIN)/python -c 'import secrets; print(secrets.randbits(62))')}; \
	$(BIN)/spikein run bench "seeds=[0,$$SECRET]" && \
	$(BIN)/spikein bundle bench --include shadows --hold-out $$SECRET --labels-out bench.labels --out bench.bundle

# Nothing is compiled ahead: the few modules that are imported are compiled then, in half the time.
# Warnings of pip say nothing of use here; its errors are shown.
$(RUNTIME): pyproject.toml constraints.txt
	@echo "Setting up $(VENV), once; about a minute …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --no-compile --constraint constraints.txt --editable .
	@touch $(RUNTIME)

$(SETUP): $(RUNTIME)
	@echo "Adding what tests and tools need, once; some minutes …"
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --editable '.[dev]'
	@touch $(SETUP)

clean:
	rm -rf $(VENV) build dist site *.egg-info
