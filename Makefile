# SPDX-License-Identifier: Apache-2.0
#
# Thin on purpose: CMake owns the C side, pytest the tests, cross/ the emulation.
.DEFAULT_GOAL := help
.PHONY: help setup tools native native-asan native-tsan aarch64 armv7 armv7-softfp native-clang
.PHONY: sysroot jars java prebuilt wheels debs abi demo test lint docs clean
.PHONY: clang doxygen browser sshd packaging javac shells llvm softfp
.PHONY: bench bench-host bench-kernels costs accuracy

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z].*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing: tools by apt, Python packages into .venv
	@cross/setup.sh

native: setup ## build the library for this machine in build/native
native-asan: setup
native-tsan: setup
aarch64: setup ## cross-build it in build/aarch64
armv7: setup ## the same for 32-bit ARM in build/armv7
armv7-softfp: softfp
native-clang: clang
native native-asan native-tsan aarch64 armv7 armv7-softfp native-clang:
	@cross/build.sh $@

# What cross/setup.sh installs for some of the tests only.
tools-doxygen = doxygen:doxygen
tools-browser = chromium:chromium
tools-sshd = sshd:openssh-server # which serves as a board; it need not run
tools-packaging = abidw:abigail-tools g++:g++ pkg-config:pkgconf
tools-javac = javac:openjdk-17-jdk-headless
tools-shells = zsh:zsh fish:fish mandoc:mandoc
tools-llvm = llvm-mca-19:llvm-19
tools-softfp = arm-linux-gnueabi-gcc:gcc-arm-linux-gnueabi \
	arm-linux-gnueabi-gcc:libc6-dev-armel-cross
# Any will do; cross/clang.cmake takes the newest.
tools-clang = $(if $(wildcard /usr/bin/clang /usr/bin/clang-[1-9]*),,clang-19:clang-19)

doxygen browser sshd packaging javac shells llvm softfp clang: setup
	@cross/setup.sh $(tools-$@)

tools: ## install all tools for the tests by apt, no Python packages
	@N8_EXTRA= cross/setup.sh $(tools-doxygen) $(tools-browser) $(tools-sshd) $(tools-packaging) \
		$(tools-javac) $(tools-shells) $(tools-llvm) $(tools-softfp) $(tools-clang)

debs: prebuilt ## pack the C library as Debian packages in build/debs
	@cross/debs.sh

abi: packaging ## store the binary interface of the C library, with each release
	@.venv/bin/python tests/packages/shared/abi.py

jars: javac
	@.venv/bin/python cross/java.py jars

java: jars native native-asan aarch64 sysroot ## build libneon8_jni.so and the Java classes
	@for preset in native native-asan aarch64; do \
		N8_CMAKE=-DN8_JNI=ON cross/build.sh $$preset neon8_jni || exit; done
	@.venv/bin/python cross/java.py jre

sysroot: setup ## make the ARM Pythons that qemu runs, in build/sysroot
	@.venv/bin/python cross/sysroot.py

prebuilt: jars softfp ## build the library for all targets in build/prebuilt
	@cross/prebuilt.sh

wheels: prebuilt ## build the Python package for every Linux in build/wheels; WHEELS=names for some
	@.venv/bin/python cross/musl.py
	@.venv/bin/python cross/wheels.py $(WHEELS)

demo: export N8_EXTRA = demo # torch and all else are for the tests
demo: native ## handwritten digits: FP32, int8 here, int8 on emulated ARM
	@cross/build.sh aarch64 neon8_runner
	@cross/build.sh armv7 neon8_runner
	@.venv/bin/python tests/demo/demo.py

test: ## set up and run every test there is
	@tests/run.sh

bench: native bench-host ## measure the PC, then calibration; SQUEEZENET=file.onnx for that network, too
	@.venv/bin/python -m bench.calibration.report $(if $(SQUEEZENET),--squeezenet $(SQUEEZENET))

# Without NETWORKS, the whole table, which is then written into the page.
bench-host: native ## measure the PC against onnxruntime; NETWORKS=squeezenet1_1,resnet50 for some
	@.venv/bin/python -m bench.host.report \
		$(if $(NETWORKS),--networks $(NETWORKS),--write docs/performance.md)

# Without LAYERS and CORES, the whole table, which is then written into the page.
bench-kernels: native aarch64 armv7 llvm ## count and model the ARM kernels; LAYERS=net,fc2048-1000 CORES=a53,n2 for some
	@.venv/bin/python -m bench.kernels.report \
		$(if $(LAYERS),--layers $(LAYERS)) $(if $(CORES),--cores $(CORES)) \
		$(if $(LAYERS)$(CORES),,--write docs/performance.md)

costs: native aarch64 llvm ## make the tables of `neon8 profile` anew; CORES="cortex-a53 cortex-a55" for some
	@.venv/bin/python -m bench.kernels.costs $(if $(CORES),--core $(CORES))

# Without NETWORKS and RECIPES, the whole table, which is then written into the page.
accuracy: native ## measure int8 on the trained networks of ZOO=folder; NETWORKS=a,b RECIPES=plain,default for some
	@.venv/bin/python -m bench.accuracy.report \
		$(or $(ZOO),$(error ZOO=folder is missing: bench/accuracy/networks.py says what is in it)) \
		$(if $(NETWORKS),--networks $(NETWORKS)) $(if $(RECIPES),--recipes $(RECIPES)) \
		$(if $(NETWORKS)$(RECIPES),,--write docs/accuracy.md)

docs: doxygen ## make the documentation in build/docs; a broken link is an error
	@.venv/bin/python -m sphinx -b html -W --keep-going -q docs build/docs

lint: setup ## judge the sources only
	@tests/lint.sh

clean: ## remove what was built; .venv stays
	rm -rf build
