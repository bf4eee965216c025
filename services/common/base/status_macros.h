#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Returns from the enclosing function when `expression` is an error status.
#define ADAMANT_RETURN_IF_ERROR(expression)                                 \
  do {                                                                      \
    if (absl::Status adamant_status = (expression); !adamant_status.ok()) { \
      return adamant_status;                                                \
    }                                                                       \
  } while (false)

#define ADAMANT_CONCAT_INNER(a, b) a##b
#define ADAMANT_CONCAT(a, b) ADAMANT_CONCAT_INNER(a, b)

/// Assigns the value of a StatusOr to `declaration`, or returns its error.
#define ADAMANT_ASSIGN_OR_RETURN(declaration, expression) \
  ADAMANT_ASSIGN_OR_RETURN_INNER(ADAMANT_CONCAT(adamant_or_, __LINE__), declaration, expression)
#define ADAMANT_ASSIGN_OR_RETURN_INNER(name, declaration, expression) \
  auto name = (expression);                                           \
  if (!name.ok()) {                                                   \
    return std::move(name).status();                                  \
  }                                                                   \
  declaration = *std::move(name)
