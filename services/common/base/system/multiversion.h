#pragma once

/// Before a function: compiles it for AVX-512, AVX2 and the baseline, and chooses at load time. The
/// results are the same bits on all of them only if the file is compiled with -ffp-contract=off.
/// ADAMANT_MULTIVERSION_FUSED is for files compiled with -ffp-contract=fast: it has fused
/// multiply-add wherever the CPU has it, and so other bits on the baseline. Sanitizers do not bear
/// the load-time choice, other processors have nothing to choose.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define ADAMANT_MULTIVERSION __attribute__((target_clones("avx512f", "avx2", "default")))
#define ADAMANT_MULTIVERSION_FUSED \
  __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define ADAMANT_MULTIVERSION
#define ADAMANT_MULTIVERSION_FUSED
#endif

/// Before a loop: no iteration reads what another writes, whatever the pointers look like.
#if defined(__clang__)
#define ADAMANT_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define ADAMANT_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif
