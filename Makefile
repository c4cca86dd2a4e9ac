# Two commands matter: `make run` serves the example worker, `make test` passes the tests.
# Both set everything up first, in .venv and in the user's cache folder.

PYTHON     ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(if $(shell $(p) -c 'import sys; sys.exit(not (3,11) <= sys.version_info[:2] <= (3,13))' 2>/dev/null && echo ok),$(p))))
TENSORFLOW ?= cpu
WORKER     ?= examples/edge-cache
PORT       ?= 8787
TESTS      ?= tests

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready-$(TENSORFLOW)

.DEFAULT_GOAL := help
.PHONY: help run test check format guests models bench clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

run: $(READY) guests models ## Serve the example worker on http://localhost:8787 (WORKER=path, PORT=number)
	$(BIN)/belem dev $(WORKER) --port $(PORT)

test: $(READY) guests models ## Run the tests (TESTS=path)
	$(BIN)/pytest -n 2 --dist loadfile $(TESTS)

check: $(READY) ## Check format, lint, types, import contracts and generated code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright
	PYTHONPATH=src $(BIN)/lint-imports
	$(BIN)/python -m tests.support.protos

format: $(READY) ## Format and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

guests: $(READY) ## Build the guests (cached by content)
	$(BIN)/python -m belem.isolates.guests.build

models: $(READY) ## Pull the weights that the example and the tests use
	$(BIN)/belem ai pull @cf/meta/llama-3-8b-instruct

bench: $(READY) guests models ## Run every benchmark, each beside a peer
	@for script in benchmarks/[a-z]*.py; do \
	    echo "== $$script"; $(BIN)/python -m benchmarks.$$(basename $$script .py) || exit 1; done

clean: ## Remove what was built here (not the user's cache folder)
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .belem
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f isolates/guests/*/*.wasm

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Belem needs Python 3.11, 3.12 or 3.13; none was found. Set PYTHON=/path/to/python."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@echo "Installing Belem, TensorFlow ($(TENSORFLOW)) and the tools into $(VENV) (about two minutes the first time) ..."
	$(BIN)/python -m pip install --quiet --editable '.[$(TENSORFLOW),otel]' --group dev
	@touch $@
