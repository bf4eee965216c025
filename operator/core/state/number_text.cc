#include "operator/core/state/number_text.h"

#include <cstdio>

namespace adamant::controller {

std::string NumberText(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

}  // namespace adamant::controller
