# Everything a person types: `make pilot` and `make test` set up what they need first.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: pilot test slow check simulate bench clean

pilot: $(READY)  ## the built-in study, from nothing to a verdict
	$(BIN)/redline run pilot
	$(BIN)/redline report pilot

test: $(READY)  ## the whole suite but what is marked slow
	$(BIN)/python -m pytest -n auto -q

slow: $(READY)  ## the long forms of the fault tests
	$(BIN)/python -m pytest -n auto -q -m slow

check: $(READY)  ## format, lint, types and the allowed imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

simulate: $(READY)  ## planted truth: coverage of every interval, 4 minutes on 2 cores
	$(BIN)/python tools/simulate.py

bench: $(READY)  ## this machine against a plain nanoGPT-style loop, as ratios
	$(BIN)/redline bench

# Set up once, and again when what is installed changes. Pinned, so that a new machine gets what
# was tested; the mark is written last, so that a broken set-up is repeated.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Redline needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable ".[dev]"
	touch $(READY)

clean:  ## remove the environment; stores in redline-runs/ stay
	rm -rf .venv
