# Thin: set-up, CMake and ctest behind names for people. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: train test bench simulate mutate fuzz images cluster cluster-down cluster-test format tidy clean help

JOBS ?= $(shell nproc)
SEEDS ?= 100000
FIRST_SEED ?= 1
NODES ?= 3
SECONDS ?= 60

train: ## install what is missing, build, train the digits example: prints accuracy and the model's path
	@tools/setup
	@tools/build release product
	@build/release/bin/adamant train deploy/examples/digits.yaml

test: ## install what is missing, build everything, run every test
	@tools/setup
	@tools/build release all
	@ctest --test-dir build/release --no-tests=error --output-on-failure -j $(JOBS) $(CTEST_FLAGS)

bench: ## build and run all benchmarks, write docs/bench/all.* and pytorch.md; MNIST=DIR: also train on its files
	@tools/setup build tests bench
	@tools/build release benchmarks product
	@tests/bench/report.py --write docs/bench/all.jsonl
	@tools/compare_pytorch $(if $(MNIST),--mnist $(MNIST)) --write docs/bench/pytorch.md

simulate: ## run the simulations of the cluster, of replication and of the operator: make simulate SEEDS=100000 FIRST_SEED=1
	@tools/setup
	@tools/build failpoints simulation_test replication_simulation_test operator_simulation_test
	@for each in simulation_test replication_simulation_test operator_simulation_test; do \
	  ADAMANT_SIMULATION_SEEDS=$(SEEDS) ADAMANT_SIMULATION_FIRST_SEED=$(FIRST_SEED) \
	    build/failpoints/tests/$$each || exit 1; done

mutate: ## break the code in the ways of tests/mutations, say which tests notice: make mutate NAME=R05 SEEDS=1000
	@tools/setup
	@tools/mutate $(if $(filter command line,$(origin SEEDS)),--seeds $(SEEDS)) $(NAME)

fuzz: ## give what reads files and messages such as nobody would write: make fuzz SECONDS=60 TARGETS="idx manifest"
	@tools/setup build tests checks
	@tools/build fuzz fuzz_targets
	@tools/fuzz --seconds $(SECONDS) $(TARGETS)

images: ## build the container image; make images FULL=1 compiles inside it
	@tools/images $(if $(FULL),full)

cluster: ## start a Kubernetes on this machine, until Ctrl-C: make cluster NODES=3 (needs root)
	@tools/setup
	@command -v containerd >/dev/null || tools/setup cluster
	@tests/cluster/cluster.py up --nodes $(NODES)

cluster-down: ## remove the one that `make cluster` started
	@tests/cluster/cluster.py down

cluster-test: ## train JOB, or the digits, on a Kubernetes of three nodes; DATA: folder for the job's claim (needs root)
	@tools/setup
	@command -v containerd >/dev/null || tools/setup cluster
	@command -v buildah docker >/dev/null || tools/setup images
	@echo "cluster-test: builds Adamant, the cluster's programs (once) and the image; then trains"
	@tools/build release product
	@PYTHONPATH=tests/cluster tests/e2e/operator_example.py $(if $(DATA),--data $(DATA)) $(JOB)

format: ## format the tracked sources
	@tools/setup checks
	@tools/check_format --fix

tidy: ## run clang-tidy and clang's thread-safety analysis
	@tools/setup build tests checks
	@tools/build clang generated_sources
	@tools/tidy

clean: ## remove what was built; runs/ stays
	@rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
