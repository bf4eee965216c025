#include "operator/core/state/number_text.h"

#include <cstdio>

namespace adamant::controller {

std::string NumberText(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

std::string SecondsText(std::chrono::milliseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace adamant::controller
