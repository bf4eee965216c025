#include "services/common/job/yaml/yaml_tree.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <sstream>
#include <utility>

#include "services/common/base/text/utf8.h"
#include "services/common/job/yaml/schema.h"

namespace adamant::job {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxDepth = 32;

std::string TooDeep() {
  return "nested too deep (allowed: " + std::to_string(kMaxDepth) + " levels)";
}

Position PositionOf(const YAML::Mark& mark) {
  return mark.is_null() ? Position{} : Position{mark.line + 1, mark.column + 1};
}

YamlNode NodeAt(YamlNode::Kind kind, Position at) {
  YamlNode node;
  node.kind = kind;
  node.at = at;
  return node;
}

/// What keeps `text` from being UTF-8 text, and moves `at` there; "" if nothing.
std::string_view WhyNoText(std::string_view text, Position& at) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = Utf8Length(text.substr(i));
    if (length == 0) {
      return text[i] == '\0' ? "this is a NUL character, as no text has, or only UTF-16; save the "
                               "file as UTF-8 text"
                             : "this byte is not UTF-8 text; save the file as UTF-8";
    }
    at = text[i] == '\n' ? Position{at.line + 1, 1} : Position{at.line, at.column + 1};
    i += length;
  }
  return "";
}

/// Builds the tree from the parser's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Problems& problems) : problems_(problems) {}

  YamlNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Leaf(NodeAt(YamlNode::Kind::kNull, PositionOf(mark)), "?", anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    if (skipped_ == 0) {
      problems_.Add(PositionOf(mark), Path(), "aliases (*name) are not allowed; write the value");
      Attach(NodeAt(YamlNode::Kind::kRefused, PositionOf(mark)));
    }
  }

  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = NodeAt(YamlNode::Kind::kScalar, PositionOf(mark));
    node.text = value;
    node.quoted = tag == "!";
    if (Position within; skipped_ == 0 && !WhyNoText(value, within).empty()) {
      problems_.Add(
          node.at, Path(), "an escape in this text cannot be read; write the character itself");
      node.kind = YamlNode::Kind::kRefused;
    }
    Leaf(std::move(node), tag, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kList, PositionOf(mark), tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kMap, PositionOf(mark), tag, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  /// A map or list that is still open.
  struct Frame {
    YamlNode node;
    std::optional<YamlNode> key;  // of the value to come, in a map
    std::map<std::string, Position> keys;
  };

  /// The path of the value to come.
  [[nodiscard]] std::string Path() const {
    std::string path;
    for (const Frame& frame : open_) {
      if (frame.node.kind == YamlNode::Kind::kList) {
        path = ElementPath(path, frame.node.items.size());
      } else if (frame.key) {
        path = FieldPath(path, frame.key->text);
      }
    }
    return path;
  }

  /// Reports tags and anchors; false if there were any.
  bool Plain(Position at, const std::string& tag, YAML::anchor_t anchor) {
    const bool tagged = tag != "?" && tag != "!" && !tag.empty();
    if (tagged) {
      problems_.Add(at, Path(), "tags (" + Quote(tag) + ") are not allowed; remove the tag");
    }
    if (anchor != YAML::NullAnchor) {
      problems_.Add(at, Path(), "anchors (&name) are not allowed; remove the anchor");
    }
    return !tagged && anchor == YAML::NullAnchor;
  }

  void Leaf(YamlNode node, const std::string& tag, YAML::anchor_t anchor) {
    if (skipped_ > 0) {
      return;
    }
    if (!Plain(node.at, tag, anchor)) {
      node.kind = YamlNode::Kind::kRefused;
    }
    Attach(std::move(node));
  }

  void Open(YamlNode::Kind kind, Position at, const std::string& tag, YAML::anchor_t anchor) {
    if (skipped_ > 0 || open_.size() == kMaxDepth) {
      if (skipped_++ == 0) {
        problems_.Add(at, Path(), TooDeep());
      }
      return;
    }
    Plain(at, tag, anchor);
    open_.push_back({.node = NodeAt(kind, at), .key = {}, .keys = {}});
  }

  void Close() {
    if (skipped_ > 0) {
      if (--skipped_ == 0) {
        Attach(NodeAt(YamlNode::Kind::kRefused, {}));
      }
      return;
    }
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    Attach(std::move(node));
  }

  void Attach(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = open_.back();
    if (frame.node.kind == YamlNode::Kind::kList) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.key) {
      frame.key = std::move(node);
    } else {
      AttachEntry(frame, *std::exchange(frame.key, std::nullopt), std::move(node));
    }
  }

  void AttachEntry(Frame& frame, YamlNode key, YamlNode value) {
    if (key.kind == YamlNode::Kind::kRefused) {
      return;
    }
    if (key.kind != YamlNode::Kind::kScalar) {
      problems_.Add(key.at, Path(), "a key must be a text");
      return;
    }
    const auto [first, fresh] = frame.keys.emplace(key.text, key.at);
    if (!fresh) {
      problems_.Add(key.at,
                    FieldPath(Path(), key.text),
                    "given twice; first on line " + std::to_string(first->second.line));
      return;
    }
    frame.node.entries.push_back(
        {.key = std::move(key.text), .at = key.at, .value = std::move(value)});
  }

  Problems& problems_;
  YamlNode root_;
  std::vector<Frame> open_;
  std::size_t skipped_ = 0;  // containers open beyond kMaxDepth
};

/// Notices whether the rest of the stream holds anything.
class DocumentProbe final : public YAML::EventHandler {
 public:
  std::optional<Position> started;

  void OnDocumentStart(const YAML::Mark& mark) override { started = PositionOf(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&,
                const std::string&,
                YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&,
                       const std::string&,
                       YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&,
                  const std::string&,
                  YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// A tab among the blanks that a line begins with, where the parser stopped or on the line before,
/// which it may have read as a part of what it was at.
std::optional<Position> IndentingTab(std::string_view text, int stopped) {
  std::optional<Position> found;
  for (int line = 1; line <= stopped && !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::string_view blanks = text.substr(0, std::min(end, text.find_first_not_of(" \t")));
    const std::size_t tab = blanks.find('\t');
    if (line + 1 >= stopped && tab != std::string_view::npos) {
      found = Position{line, static_cast<int>(tab) + 1};
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return found;
}

// What has most likely led to what the parser says, which is of where it could not go on.
std::string Explained(const std::string& message) {
  using Explanation = std::pair<const char*, const char*>;
  for (const auto& [said, meant] : {
           Explanation{YAML::ErrorMsg::END_OF_MAP,
                       "this line, or one before, is indented otherwise than its neighbours, or "
                       "lacks its ':'"},
           Explanation{YAML::ErrorMsg::END_OF_MAP_FLOW,
                       "a '{' before has no '}', or a ',' between two fields or a closing quote "
                       "is missing"},
           Explanation{YAML::ErrorMsg::END_OF_SEQ_FLOW,
                       "a '[' before has no ']', or a ',' or a closing quote is missing"},
           Explanation{YAML::ErrorMsg::MAP_VALUE,
                       "here, or on the line before, a ':' or the space behind one is missing"},
           Explanation{YAML::ErrorMsg::EOF_IN_SCALAR, "a quote before is not closed"},
       }) {
    if (message == said) {
      return message + ": " + meant;
    }
  }
  return message;
}

}  // namespace

std::optional<YamlNode> ReadYaml(std::string_view text, Problems& problems) {
  if (text.size() > kMaxBytes) {
    problems.Add({},
                 "",
                 "the file has " + std::to_string(text.size()) +
                     " bytes (allowed: " + std::to_string(kMaxBytes) + ")");
    return std::nullopt;
  }
  Position place{1, 1};
  if (const std::string_view why = WhyNoText(text, place); !why.empty()) {
    problems.Add(place, "", std::string(why));
    return std::nullopt;
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(problems);
    if (!parser.HandleNextDocument(builder)) {
      problems.Add({}, "", "the file is empty; it must hold one TrainingJob");
      return std::nullopt;
    }
    DocumentProbe probe;
    parser.HandleNextDocument(probe);
    if (probe.started) {
      problems.Add(
          *probe.started, "", "a second document starts here; one file holds one TrainingJob");
      return std::nullopt;  // whichever is meant, what else is wrong with this one is no help
    }
    return builder.TakeRoot();
  } catch (const YAML::DeepRecursion& error) {
    if (problems.empty()) {  // else the builder has said so, at kMaxDepth
      problems.Add(PositionOf(error.mark), "", TooDeep());
    }
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    const Position at = PositionOf(error.mark);
    if (const std::optional<Position> tab = IndentingTab(text, at.line)) {
      problems.Add(*tab, "", "not valid YAML: a tab indents this line; use spaces");
    } else {
      problems.Add(at, "", "not valid YAML: " + Explained(error.msg));
    }
    return std::nullopt;
  }
}

}  // namespace adamant::job
