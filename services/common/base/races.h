#pragma once

/// Before a function that reads or writes weights which other threads write meanwhile: keeps it out
/// of line, and exempt from ThreadSanitizer by name. kernels/hogwild.h says why that is right.
#define ADAMANT_RACES __attribute__((noinline, no_sanitize("thread")))
