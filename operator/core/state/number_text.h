#pragma once

#include <chrono>
#include <string>

namespace adamant::controller {

/// A number as people read it in messages, with so many significant digits: "0.01", "2.3e+05".
std::string NumberText(double value, int digits = 4);

/// "90 s": whole seconds.
std::string SecondsText(std::chrono::milliseconds time);

}  // namespace adamant::controller
