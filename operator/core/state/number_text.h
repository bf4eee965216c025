#pragma once

#include <string>

namespace adamant::controller {

/// A number as people read it in messages, with so many significant digits: "0.01", "2.3e+05".
std::string NumberText(double value, int digits = 4);

}  // namespace adamant::controller
