# Every target does its own set-up. `make help` lists them.
.PHONY: lint fmt
BIN := .venv/bin

lint: ## Style, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
