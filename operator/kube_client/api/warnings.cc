#include "operator/kube_client/api/warnings.h"

#include <utility>

namespace adamant::kube {

std::vector<std::string> ParseWarnings(std::string_view header) {
  std::vector<std::string> texts;
  while (true) {
    const std::size_t begin = header.find('"');
    if (begin == std::string_view::npos) {
      return texts;
    }
    header.remove_prefix(begin + 1);
    std::string text;
    std::size_t at = 0;
    for (; at < header.size() && header[at] != '"'; ++at) {
      at += header[at] == '\\' && at + 1 < header.size() ? 1 : 0;  // an escaped character
      text += header[at];
    }
    if (at == header.size()) {
      return texts;  // it was cut off
    }
    header.remove_prefix(at + 1);
    texts.push_back(std::move(text));
  }
}

}  // namespace adamant::kube
