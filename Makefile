# Needs make and Python 3.11 or newer; everything else is installed into .venv, once, and again when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# The tests run in two processes; each keeps its linear algebra to one thread.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
# Most of what the quick tests cost is compilation of programs that run once: it is done without optimisation. The slow
# tests compile as users do.
UNOPTIMISED := XLA_FLAGS=--xla_backend_optimization_level=0

.PHONY: run test test-slow mutants lint docs bench
.NOTPARALLEL:

run: $(VENV)/.installed-base
	$(BIN)/solvable study 'z1**2 + sign(z1*z2*z3)' --out out

test: $(VENV)/.installed-dev
	$(ONE_THREAD) $(UNOPTIMISED) $(BIN)/python -m pytest -n 2 --dist loadgroup --quiet

test-slow: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadfile --quiet -m slow

mutants: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/python tests/mutants.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

docs: $(VENV)/.installed-docs
	$(BIN)/zensical build --clean --strict

bench: $(VENV)/.installed-base
	@for script in benchmarks/*.py; do echo "$$script"; $(BIN)/python "$$script" || exit 1; done

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; try: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-base: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable '.[dev]'
	touch $@ $(VENV)/.installed-base

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable '.[docs]'
	touch $@ $(VENV)/.installed-base
