PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --no-compile --disable-pip-version-check
COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-strip-extras --custom-compile-command "make lock" --group build

.DEFAULT_GOAL := help
.PHONY: help run test lint types bench dev lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/base.stamp ## Answer a question with LATS, offline and without keys
	@$(BIN)/reflect run lats "Why is reflection useful in AI?"

# Four workers on two cores: many tests wait for other processes.
test: $(VENV)/compiled.stamp ## Run the tests (ARGS="-k lats" runs some of them)
	@$(BIN)/python -m pytest -n 4 $(ARGS)

lint: $(VENV)/dev.stamp ## Check style and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp ## Check the types
	@$(BIN)/mypy

bench: $(VENV)/dev.stamp ## Measure every strategy, and other libraries (ARGS=--no-peers leaves them out)
	@$(BIN)/python -m bench --peers $(ARGS)

dev: $(VENV)/dev.stamp ## Serve the graphs to LangGraph Studio on this machine
	@LANGGRAPH_CLI_NO_ANALYTICS=1 LANGGRAPH_NO_VERSION_CHECK=true LANGSMITH_TRACING=$${LANGSMITH_TRACING:-false} \
		$(BIN)/langgraph dev --no-browser --no-reload --n-jobs-per-worker 20 $(ARGS)

lock: $(VENV)/dev.stamp ## Pin the dependencies of pyproject.toml (ARGS=--upgrade takes the newest versions)
	$(COMPILE) $(ARGS) --output-file requirements/base.txt
	$(COMPILE) $(ARGS) --output-file requirements/dev.txt --constraints requirements/base.txt \
		--extra embeddings --extra evals --extra mcp --extra otel --extra studio --extra notebooks --extra testing --group dev

clean: ## Remove the environment and all caches
	rm -rf $(VENV) dist .benchmarks .hypothesis .langgraph_api .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The project comes without build isolation, so that its build backend is the pinned one.
$(VENV)/%.stamp: requirements/%.txt pyproject.toml | $(BIN)/pip
	@echo "Installing requirements/$*.txt into $(VENV) ..."
	@$(PIP) --no-deps --require-hashes --requirement $<
	@$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@ $(VENV)/base.stamp # the development pins contain the basic ones

# Four workers that start together would else compile the same libraries four times.
$(VENV)/compiled.stamp: $(VENV)/dev.stamp
	-@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib
	@touch $@

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "Python 3.11 or newer is needed, $(PYTHON) \
	is %d.%d: name another one, e.g. make PYTHON=python3.12 run" % v[:2])'
	@$(PYTHON) -m venv $(VENV)
