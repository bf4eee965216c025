#include "services/common/job/yaml/diagnostic.h"

namespace adamant::job {

std::string Format(const Diagnostic& diagnostic) {
  std::string line = diagnostic.file;
  if (diagnostic.line > 0) {
    line += ":" + std::to_string(diagnostic.line) + ":" + std::to_string(diagnostic.column);
  }
  line += ": ";
  if (!diagnostic.field_path.empty()) {
    line += diagnostic.field_path + ": ";
  }
  line += diagnostic.message;
  if (!diagnostic.hint.empty()) {
    line += "; " + diagnostic.hint;
  }
  return line;
}

}  // namespace adamant::job
