# make demo   render a camera roll, estimate its lights, write pictures of the result
# make test   everything that must hold: lint, types, tests, the examples and the site of the documentation
# make docs   build the documentation site: docs/_build/index.html
# make torture    damaged files, kills, full disks: MINUTES=15, SEED=, CASES=, KILLS=, or CASE= to repeat one
# make scale      archives of 20,000 files, thirty kills, millions of rows: COUNT=, ROWS=
# make programs   the tests with exiftool, RawTherapee and darktable, which it installs (Debian, Ubuntu)
# make studio     a wedding of 300 photographs in a real Chromium, then RawTherapee and darktable (Debian, Ubuntu)
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --quiet --disable-pip-version-check

.PHONY: demo test lint docs benchmark torture scale programs studio clean

demo: .venv/runtime
	$(BIN)/c5 demo --out demo --overwrite

test: .venv/development lint
	@echo "== tests"
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: .venv/development
	@echo "== lint and types"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/development
	@echo "== documentation"
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build

benchmark: .venv/development
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/speed.py
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/raw.py
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/catalog.py
	$(BIN)/python benchmarks/balance.py
	$(BIN)/python benchmarks/label.py
	$(BIN)/python benchmarks/studio.py
	$(BIN)/python benchmarks/training.py

torture: .venv/development
	PYTHONPATH=tests $(BIN)/python -m torture --minutes $(or $(MINUTES),15) $(if $(SEED),--seed $(SEED)) \
	    $(if $(CASES),--cases $(CASES)) $(if $(KILLS),--kills $(KILLS)) $(if $(CASE),--case '$(CASE)')

scale: .venv/development
	C5_KILLS=30 $(BIN)/python -m pytest tests/test_archive.py tests/test_archive_cluster.py
	$(BIN)/python benchmarks/scale.py costs
	$(BIN)/python benchmarks/scale.py files --count $(or $(COUNT),20000)
	$(BIN)/python benchmarks/scale.py rows --draw $(or $(ROWS),10000000) --estimate 1000000
	$(BIN)/python benchmarks/scale.py sets --count 200000

programs: .venv/development
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get install --yes --no-install-recommends \
	    libimage-exiftool-perl rawtherapee darktable
	$(BIN)/python -m pytest tests/test_programs.py

studio: .venv/development
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get install --yes --no-install-recommends \
	    chromium chromium-driver rawtherapee darktable
	C5_STUDIO_PHOTOGRAPHS=300 $(BIN)/python -m pytest -s tests/test_studio_wedding.py

.venv/bin/python:
	@echo "== creating .venv"
	$(PYTHON) -m venv .venv

# The empty files say what has been installed, so that nothing is installed twice.
.venv/runtime: pyproject.toml | .venv/bin/python
	@echo "== installing the package (no torch)"
	$(PIP) install --editable .
	@touch $@

.venv/development: pyproject.toml constraints.txt | .venv/bin/python
	@echo "== installing the package with its training extra and what tests and documentation need"
	$(PIP) install --constraint constraints.txt --editable '.[train,test,docs]'
	@touch $@

clean:
	rm -rf .venv demo .mypy_cache .pytest_cache .ruff_cache .hypothesis dist docs/_build
