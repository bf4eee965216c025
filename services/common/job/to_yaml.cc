#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/struct.pb.h>

#include <algorithm>
#include <map>
#include <string>
#include <variant>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"
#include "services/common/job/yaml/schema.h"
#include "services/common/job/yaml/struct_yaml.h"
#include "services/common/job/yaml/yaml_text.h"

namespace adamant::job {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

/// Writes block style, two spaces a level; lists of single values stand on one line.
class Writer {
 public:
  std::string Take() { return std::move(text_); }

  void WriteFields(const Message& message, int level) {
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *message.GetDescriptor()->field(i);
      if (IsSet(message, field)) {
        Indent(level);
        text_ += field.json_name() + ":";
        WriteValue(message, field, level);
      }
    }
  }

 private:
  void WriteValue(const Message& message, const FieldDescriptor& field, int level) {
    const Reflection& reflection = *message.GetReflection();
    const std::optional<ScalarType> type = ScalarTypeOf(field);
    if (field.is_map()) {
      WriteMap(message, field, level + 1);
    } else if (field.is_repeated() && type) {
      WriteFlow(message, field, *type);
    } else if (field.is_repeated()) {
      WriteItems(message, field, level + 1);
    } else if (type) {
      text_ += " " + ScalarText(Load(message, field), *type) + "\n";
    } else if (IsOpen(field)) {
      text_ += StructYaml(
          static_cast<const google::protobuf::Struct&>(reflection.GetMessage(message, &field)),
          level + 1);
    } else {
      WriteBlock(reflection.GetMessage(message, &field), level + 1);
    }
  }

  /// A message after its key; "{}" if it has no fields.
  void WriteBlock(const Message& message, int level) {
    const std::size_t begin = text_.size();
    text_ += "\n";
    WriteFields(message, level);
    if (text_.size() == begin + 1) {
      text_.insert(begin, " {}");
    }
  }

  void WriteFlow(const Message& message, const FieldDescriptor& field, ScalarType type) {
    text_ += " [";
    for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
      text_ += (i == 0 ? "" : ", ") + ScalarText(Load(message, field, i), type);
    }
    text_ += "]\n";
  }

  void WriteItems(const Message& message, const FieldDescriptor& field, int level) {
    text_ += "\n";
    for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
      const std::size_t begin = text_.size();
      WriteFields(message.GetReflection()->GetRepeatedMessage(message, &field, i), level + 1);
      text_.replace(begin,
                    2 * static_cast<std::size_t>(level) + 2,
                    std::string(2 * static_cast<std::size_t>(level), ' ') + "- ");
    }
  }

  void WriteMap(const Message& message, const FieldDescriptor& field, int level) {
    std::map<std::string, std::string> sorted;
    for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
      const Message& pair = message.GetReflection()->GetRepeatedMessage(message, &field, i);
      sorted[std::get<std::string>(Load(pair, *field.message_type()->map_key()))] =
          std::get<std::string>(Load(pair, *field.message_type()->map_value()));
    }
    text_ += "\n";
    for (const auto& [key, value] : sorted) {
      Indent(level);
      text_ += YamlText(key) + ": " + YamlText(value) + "\n";
    }
  }

  void Indent(int level) { text_.append(2 * static_cast<std::size_t>(level), ' '); }

  std::string text_;
};

}  // namespace

std::string ToYaml(const v1::TrainingJob& job) {
  Writer writer;
  writer.WriteFields(job, 0);
  return writer.Take();
}

}  // namespace adamant::job
