#pragma once

// Before a function that reads or writes weights which other threads write meanwhile: keeps it out
// of line, and exempt from ThreadSanitizer by name. See hogwild.h for why that is right.
#define ADAMANT_RACES __attribute__((noinline, no_sanitize("thread")))
