# Everything that is done with this checkout; `make help` lists it.
# `make demo` and `make test` do all set-up by themselves on a fresh machine.

PYTHON ?= python3
JOBS   ?= 2
BIN    := .venv/bin
STAMP  := .venv/.clew-installed
# What the measurements share, and no measurements themselves.
BENCH_PARTS := bench/noting_table.py bench/process_tree.py bench/timed_data.py bench/workload_data.py

.DEFAULT_GOAL := help
.PHONY: help setup system test demo soak bench timely lint types format clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

setup: system $(STAMP) ## Only set up: .venv, Java, PostgreSQL programs.

system:
	@bash tools/setup_system.sh

# Runs again only when pyproject.toml (or this tool chain) has changed.
$(STAMP): pyproject.toml tools/setup_venv.sh
	@bash tools/setup_venv.sh "$(PYTHON)"
	@touch $@

test: setup lint types ## Lint, types, unit tests, stores, simulation (15 minutes at most on 2 cores).
	@echo "test: pytest on $(JOBS) processes"
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --durations=15

demo: setup ## The sales pipeline on Spark: a process is killed, nothing is lost (about a minute).
	@$(BIN)/clew demo

soak: setup ## The long sweeps and the many random schedules (an hour or more).
	@$(BIN)/python -m pytest -m soak -n $(JOBS) --dist worksteal --durations=0

bench: setup ## The measurements in bench/; each prints JSON lines.
	@set -e; for script in $(filter-out $(BENCH_PARTS),$(sort $(wildcard bench/*.py))); do \
	  echo "bench: $$script" >&2; $(BIN)/python "$$script"; done

timely: setup ## Compare propagation with real Timely Dataflow (needs cargo; skips without).
	@$(BIN)/python -m tools.timely.compare

lint: setup ## Style: ruff check and ruff format --check.
	@echo "lint: ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup ## Types: mypy, strict, over src/clew.
	@echo "types: mypy"
	@$(BIN)/mypy

format: setup ## Rewrite the sources in the house format.
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

clean: ## Remove .venv and everything that tools left behind.
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist spark-warehouse metastore_db derby.log tools/timely/target
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
