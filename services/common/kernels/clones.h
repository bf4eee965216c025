#pragma once

// ADAMANT_CLONES before a function builds it for several instruction sets; the loader picks the
// best one for the machine. Left out where sanitizers are on: they do not bear the loader's choice
// (ifunc) that early.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ADAMANT_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define ADAMANT_CLONES
#endif
