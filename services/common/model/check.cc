#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "services/common/model/analysis.h"

namespace adamant::model {
namespace internal {
namespace {

// Keeps every sum over layers of values up to 2^48 within 64 bits.
constexpr std::size_t kMostLayers = 4096;
constexpr int kUnknown = -2;

bool IsName(const std::string& name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && lower(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return lower(c) || (c >= '0' && c <= '9') || c == '_';
  });
}

/// One pass over a net. The methods run in the order they stand here.
class Analyser {
 public:
  explicit Analyser(const Net& net) : net_(net), broken_(net.layers.size(), false) {
    result_.inputs.resize(net.layers.size());
    result_.shapes.resize(net.layers.size());
  }

  Analysis Run() && {
    CheckNet();
    if (net_.layers.empty() || net_.layers.size() > kMostLayers) {
      return std::move(result_);
    }
    CheckNames();
    for (int i = 0; i < Count(); ++i) {
      CheckLayer(i);
    }
    FindOutput();
    Sort();
    for (const int i : result_.order) {
      InferLayer(i);
    }
    CheckOutput();
    CheckUse();
    std::stable_sort(result_.problems.begin(),
                     result_.problems.end(),
                     [](const Problem& a, const Problem& b) { return a.layer < b.layer; });
    if (!result_.problems.empty()) {
      result_.order.clear();
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] int Count() const { return static_cast<int>(net_.layers.size()); }

  void Report(int layer, std::string field, std::string message) {
    result_.problems.push_back({layer, std::move(field), std::move(message)});
  }

  void CheckNet() {
    if (net_.input.size() != 3) {
      Report(
          -1, "input", "the input must be channels x height x width, not " + ToString(net_.input));
    } else if (*std::min_element(net_.input.begin(), net_.input.end()) < 1) {
      Report(
          -1, "input", "every extent of the input must be 1 or more, not " + ToString(net_.input));
    } else if (!ElementCount(net_.input)) {
      Report(-1, "input", "the input of " + ToString(net_.input) + " is too large");
    } else {
      input_ = net_.input;
    }
    if (net_.classes < 1) {
      Report(-1, "classes", "must be 1 or more, not " + std::to_string(net_.classes));
    }
    if (net_.layers.empty()) {
      Report(-1, "layers", "the net has no layers");
    } else if (net_.layers.size() > kMostLayers) {
      Report(-1,
             "layers",
             std::to_string(net_.layers.size()) + " layers are more than the " +
                 std::to_string(kMostLayers) + " allowed");
    }
  }

  void CheckNames() {
    for (int i = 0; i < Count(); ++i) {
      const std::string& name = net_.layers[i].name;
      if (!IsName(name)) {
        Report(i,
               "name",
               "\"" + name + "\" must be lower-case letters, digits and _, starting with a letter");
      } else if (name == "input") {
        Report(i, "name", "\"input\" is the name of the net's own input; choose another");
      } else if (const auto [at, added] = index_.emplace(name, i); !added) {
        Report(i,
               "name",
               "\"" + name + "\" is also the name of layer " + std::to_string(at->second + 1));
      }
    }
  }

  void CheckLayer(int i) {
    const Layer& layer = net_.layers[i];
    for (Problem& problem : CheckFields(layer)) {
      Report(i, std::move(problem.field), std::move(problem.message));
      broken_[i] = true;
    }
    const bool joins = layer.kind == LayerKind::kAdd || layer.kind == LayerKind::kConcat;
    if (joins ? layer.inputs.size() < 2 : layer.inputs.size() != 1) {
      Report(i,
             "inputs",
             "a " + std::string(KindName(layer.kind)) + " layer takes " +
                 (joins ? "2 or more inputs" : "1 input") + ", not " +
                 std::to_string(layer.inputs.size()));
      broken_[i] = true;
    }
    for (const std::string& name : layer.inputs) {
      const auto at = index_.find(name);
      if (name != "input" && at == index_.end()) {
        Report(i, "inputs", "there is no layer \"" + name + "\"");
        broken_[i] = true;
        continue;
      }
      result_.inputs[i].push_back(name == "input" ? -1 : at->second);
    }
  }

  void FindOutput() {
    if (net_.output.empty()) {
      result_.output = Count() - 1;
      return;
    }
    const auto at = index_.find(net_.output);
    result_.output = at == index_.end() ? kUnknown : at->second;
    if (result_.output == kUnknown) {
      Report(-1, "output", "there is no layer \"" + net_.output + "\"");
    }
  }

  /// Kahn's algorithm, always taking the layer listed first among those that are ready.
  void Sort() {
    std::vector<std::vector<int>> users(net_.layers.size());
    std::vector<int> waiting(net_.layers.size(), 0);
    std::set<int> ready;
    std::set<int> left;
    for (int i = 0; i < Count(); ++i) {
      for (const int input : result_.inputs[i]) {
        if (input >= 0) {
          users[input].push_back(i);
          ++waiting[i];
        }
      }
      (waiting[i] == 0 ? ready : left).insert(i);
    }
    while (!ready.empty() || !left.empty()) {
      if (ready.empty()) {
        const int member = BreakCycle(left);
        left.erase(member);
        ready.insert(member);
      }
      const int i = *ready.begin();
      ready.erase(ready.begin());
      result_.order.push_back(i);
      for (const int user : users[i]) {
        if (--waiting[user] == 0 && left.erase(user) == 1) {
          ready.insert(user);
        }
      }
    }
  }

  /// Reports one cycle among `left`, in which every layer waits for another of them, and returns
  /// its first member, now marked as broken.
  int BreakCycle(const std::set<int>& left) {
    std::vector<int> path;
    int at = *left.begin();
    while (std::find(path.begin(), path.end(), at) == path.end()) {
      path.push_back(at);
      const std::vector<int>& inputs = result_.inputs[at];
      at = *std::find_if(inputs.begin(), inputs.end(), [&](int i) { return left.contains(i); });
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), at));
    std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
    std::string text = net_.layers[path[0]].name;
    for (auto i = path.rbegin(); i != path.rend(); ++i) {
      text += " -> " + net_.layers[*i].name;
    }
    Report(path[0], "inputs", "the layers form a cycle: " + text);
    broken_[path[0]] = true;
    return path[0];
  }

  void InferLayer(int i) {
    std::vector<Shape> inputs;
    for (const int input : result_.inputs[i]) {
      const std::optional<Shape>& shape = input < 0 ? input_ : result_.shapes[input];
      if (!shape) {
        return;  // reported where it arose
      }
      inputs.push_back(*shape);
    }
    if (broken_[i]) {
      return;
    }
    auto inferred = InferShape(net_.layers[i], inputs);
    if (Problem* problem = std::get_if<Problem>(&inferred)) {
      Report(i, std::move(problem->field), std::move(problem->message));
      return;
    }
    Shape& output = std::get<Shape>(inferred);
    if (!ElementCount(output)) {
      Report(i, "", "its output of " + ToString(output) + " has too many elements");
      return;
    }
    if (std::optional<Shape> work = WeightShape(net_.layers[i], inputs[0])) {
      if (!ElementCount(*work)) {
        Report(i, "", "its weights of " + ToString(*work) + " are too many");
        return;
      }
      work->insert(work->end(), output.begin() + 1, output.end());
      if (!ElementCount(*work)) {
        Report(i,
               "",
               "an output of " + ToString(output) + " from an input of " + ToString(inputs[0]) +
                   " takes too many operations");
        return;
      }
    }
    result_.shapes[i] = std::move(output);
  }

  void CheckOutput() {
    if (result_.output < 0 || !result_.shapes[result_.output] || net_.classes < 1) {
      return;
    }
    const Shape& shape = *result_.shapes[result_.output];
    if (*ElementCount(shape) != net_.classes) {
      Report(result_.output,
             net_.layers[result_.output].kind == LayerKind::kFullyConnected ? "channels" : "",
             "the output layer has " + ToString(shape) + " elements, but there " +
                 (net_.classes == 1 ? "is 1 class"
                                    : "are " + std::to_string(net_.classes) + " classes"));
    }
  }

  /// Reports the layers from which no path leads to the output.
  void CheckUse() {
    if (result_.output < 0) {
      return;
    }
    std::vector<bool> used(net_.layers.size(), false);
    std::vector<int> open = {result_.output};
    while (!open.empty()) {
      const int i = open.back();
      open.pop_back();
      if (i >= 0 && !used[i]) {
        used[i] = true;
        open.insert(open.end(), result_.inputs[i].begin(), result_.inputs[i].end());
      }
    }
    for (int i = 0; i < Count(); ++i) {
      if (!used[i]) {
        Report(i,
               "",
               "nothing leads from it to the output layer \"" + net_.layers[result_.output].name +
                   "\"");
      }
    }
  }

  const Net& net_;
  std::optional<Shape> input_;  // when it is sound
  std::unordered_map<std::string, int> index_;
  std::vector<bool> broken_;  // layers whose shape cannot be inferred
  Analysis result_;
};

}  // namespace

Analysis Analyse(const Net& net) { return Analyser(net).Run(); }

}  // namespace internal

std::vector<Problem> Check(const Net& net) { return internal::Analyse(net).problems; }

}  // namespace adamant::model
