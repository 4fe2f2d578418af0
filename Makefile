# Every target does its own set-up. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help demo test setup test-programs lint lint-and-test-pure test-quick-pure test-long test-long-beside fmt docs stories quick lock clean test-pure test-real test-group test-kubernetes test-kubernetes-short kubernetes s3-server simulate campaign fuzz supply bench studies
# The tests start hundreds of processes: without kept byte code each one compiles the program anew.
export PYTHONDONTWRITEBYTECODE :=
BIN := .venv/bin
READY := .venv/.ready
PREPARED := .venv/.prepared
PYTHON ?= python3
WORKERS ?= 2
SEEDS ?= 10000
SEED ?= 1
MINUTES ?= 3

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup ## Show the main job on an embedded broker
	$(BIN)/penstock demo

# A first run compiles the test cluster at low priority beside what needs neither broker nor Spark.
# Tests with real parts leave a quarter of two cores idle; the long imagined groups take it.
test: setup test-programs ## Run every check and test; of the long tests (live, kubernetes_long) only the short forms
	@$(MAKE) --no-print-directory --jobs=2 kubernetes lint-and-test-pure
	@$(MAKE) --no-print-directory --jobs=2 test-real test-long-beside
	@$(MAKE) --no-print-directory test-kubernetes-short

lint-and-test-pure:
	@$(MAKE) lint
	@$(MAKE) test-quick-pure

setup: $(PREPARED) ## Make .venv with locked packages, fetch the jars, and let Java keep their classes for quick starts
	@$(BIN)/penstock jars fetch --quiet

$(PREPARED): $(READY)
	@$(BIN)/penstock jars fetch --quiet
	@$(BIN)/penstock jars prepare --quiet
	@touch $@

$(READY): requirements/development.txt requirements/build.txt pyproject.toml setup/install.sh
	@PYTHON=$(PYTHON) setup/install.sh
	@touch $@

test-programs: ## Install what only tests need (a browser, Prometheus), on Debian as root
	@setup/test_programs.sh

lint: setup ## Style, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Where every branch is covered: what only decides.
PURE := $(addprefix src/penstock/,$(addsuffix /*.py,model messages metrics packing topics controller/core consumer/core monitor/core committer/core \
	deployment/kubernetes/core page/core))
EMPTY :=
COMMA := ,
# Only these are traced: no other coverage is judged, and tracing takes time.
COVERED := $(patsubst %/*.py,--cov=%,$(PURE))
NO_PARTS := not broker and not spark and not live and not kubernetes and not browser
# Collecting every test takes half a minute for each worker, so these say where some are.
WITH_PARTS := tests/behaviour/laboratory/studies tests/documentation tests/real_broker tests/real_browser tests/real_spark
WITH_KUBERNETES := tests/contracts tests/real_kubernetes
SLOW := tests/behaviour/controller tests/behaviour/packing tests/simulation

test-pure: test-quick-pure test-long ## The tests that need neither broker, Spark nor browser, on all cores

test-quick-pure: setup
	$(BIN)/pytest -n $(WORKERS) -m "$(NO_PARTS) and not slow" $(COVERED) --cov-report=
	$(BIN)/coverage report --fail-under=100 --include="$(subst $(EMPTY) $(EMPTY),$(COMMA),$(PURE))"

# At a low priority a test may wait long for the processor: none has less than a quarter of an hour.
test-long: setup
	$(BIN)/pytest -n $(WORKERS) --dist worksteal --timeout 900 -m "$(NO_PARTS) and slow" $(SLOW)

test-long-beside: setup
	@echo "the long imagined groups run beside at the lowest priority; what they say comes when they end"
	@mkdir -p out && setup/lowest_priority.sh $(MAKE) --no-print-directory test-long > out/test-long.log 2>&1; \
		ended=$$?; cat out/test-long.log; exit $$ended

s3-server: setup ## Compile the tests' S3 server once, where there is Go (two minutes)
	@$(BIN)/python tests/kit/lake/s3_server.py

test-real: setup s3-server test-programs ## The tests that run a real broker, real Spark and a real browser
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "(broker or spark or browser) and not live and not kubernetes" $(WITH_PARTS)

test-group: setup ## The live group, harmed in every way, and the demo (about a quarter of an hour)
	$(BIN)/pytest tests/real_group

kubernetes: setup ## Compile the test cluster once, where there is Go (six minutes)
	@$(BIN)/python tests/kit/kubernetes/compile_kubernetes.py

test-kubernetes-short: kubernetes ## The tests against a real API server that take seconds
	$(BIN)/pytest -m "kubernetes and not kubernetes_long" $(WITH_KUBERNETES)

test-kubernetes: kubernetes ## All tests against Kubernetes: real pods, hundreds of consumers
	$(BIN)/pytest -m kubernetes $(WITH_KUBERNETES)

simulate: setup ## The whole protocol under faults, for SEEDS seeds (default 10000)
	$(BIN)/python -m penstock.laboratory.protocol_simulation --seeds $(SEEDS)

# LOADED=1 runs two busy processes beside the group.
campaign: setup ## A live group under random faults (SEED=n MINUTES=m LOADED=1), its records counted twice
	$(BIN)/penstock campaign --seed $(SEED) --minutes $(MINUTES) $(if $(LOADED),--busy 2 --out out/campaign-loaded)

# What crashes is kept in tests/fuzz/corpus: mend it, and commit both.
fuzz: setup ## Every parser of foreign bytes against made input, for ten minutes (MINUTES=m)
	PYTHONPATH=src:tests $(BIN)/python -m kit.fuzz --minutes $(if $(filter file,$(origin MINUTES)),10,$(MINUTES))

# The last step needs a service of advisories; where none can be reached it fails, and says so.
supply: setup ## What is shipped: bill of materials (out/supply), licences, known vulnerabilities
	PYTHONPATH=src:tools $(BIN)/python -m supply bill out/supply/bill-of-materials.json
	PYTHONPATH=src:tools $(BIN)/python -m supply licences
	@setup/vulnerabilities.sh

bench: setup ## The benchmarks; best on a quiet machine
	for one in codec controller_step controller_cpu metrics status_topic packing monitor page page_browser pipeline object_store consumer many_tables many_writers table_log table_upkeep week_of_log lake_day live_group first_start kubernetes; do $(BIN)/python benchmarks/$$one.py; done

studies: setup ## Run every study again and write docs/development/studies; best on a quiet machine
	$(BIN)/penstock study packing
	$(BIN)/penstock study frequency
	$(BIN)/penstock study monitor
	$(BIN)/penstock study consumer

# PACKAGE is a folder of tests/behaviour; without it, all of them.
quick: $(READY) ## The one-minute loop: style, types, and the tests of one package (PACKAGE=controller)
	$(BIN)/ruff format --check -q . && $(BIN)/ruff check -q . && $(BIN)/mypy && $(BIN)/lint-imports --no-logo
	$(BIN)/pytest -q -n $(WORKERS) -m "$(NO_PARTS) and not slow" tests/behaviour/$(PACKAGE) tests/stories tests/documentation

fmt: setup ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup ## Write every generated file: pages, schemas, manifests
	PYTHONPATH=src:tests:tools $(BIN)/python -m documents

stories: setup ## Write the traces of tests/stories again; read the diff
	PYTHONPATH=src:tests:tools $(BIN)/python -m documents.stories

lock: ## Write requirements/*.txt anew (releases younger than a week are left out)
	setup/lock.sh

clean: ## Remove what make made here (not the jar cache)
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage out
