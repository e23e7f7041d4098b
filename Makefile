# make demo   render a camera roll, estimate its lights, write pictures of the result
# make test   everything that must hold: lint, types, tests
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --quiet --disable-pip-version-check

.PHONY: demo test lint benchmark clean

demo: .venv/runtime
	$(BIN)/c5 demo --out demo

test: .venv/development lint
	@echo "== tests"
	$(BIN)/python -m pytest

lint: .venv/development
	@echo "== lint and types"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

benchmark: .venv/development
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/training.py

.venv/bin/python:
	@echo "== creating .venv"
	$(PYTHON) -m venv .venv

# The empty files say what has been installed, so that nothing is installed twice.
.venv/runtime: pyproject.toml | .venv/bin/python
	@echo "== installing the package (no torch)"
	$(PIP) install --editable .
	@touch $@

.venv/development: pyproject.toml constraints.txt | .venv/bin/python
	@echo "== installing the package with its training extra and what the tests need"
	$(PIP) install --constraint constraints.txt --editable '.[train,test]'
	@touch $@

clean:
	rm -rf .venv demo .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
