#include "services/common/job/yaml/changes.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/message_differencer.h>

#include <memory>
#include <optional>
#include <utility>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/yaml/schema.h"
#include "services/common/job/yaml/yaml_text.h"

namespace adamant::job {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

/// A message that has only this field of another one.
std::unique_ptr<Message> Only(const Message& message, const FieldDescriptor& field) {
  std::unique_ptr<Message> only(message.New());
  only->CopyFrom(message);
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    if (message.GetDescriptor()->field(i) != &field) {
      only->GetReflection()->ClearField(only.get(), message.GetDescriptor()->field(i));
    }
  }
  return only;
}

/// "" when it is absent.
std::string TextOf(const Message& message, const FieldDescriptor& field, ScalarType type) {
  return IsSet(message, field) ? ScalarText(Load(message, field), type) : "";
}

void Compare(const Message& before,
             const Message& after,
             const std::string& path,
             std::vector<FieldChange>& changes) {
  for (int i = 0; i < before.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *before.GetDescriptor()->field(i);
    const std::string field_path = FieldPath(path, field.json_name());
    const std::optional<ScalarType> type = ScalarTypeOf(field);
    if (field.is_repeated() || (!type && IsOpen(field))) {
      if (!MessageDifferencer::Equals(*Only(before, field), *Only(after, field))) {
        changes.push_back({.path = field_path, .before = "", .after = ""});
      }
    } else if (type) {
      FieldChange change{.path = field_path,
                         .before = TextOf(before, field, *type),
                         .after = TextOf(after, field, *type)};
      if (change.before != change.after) {
        changes.push_back(std::move(change));
      }
    } else if (IsSet(before, field) || IsSet(after, field)) {
      Compare(before.GetReflection()->GetMessage(before, &field),
              after.GetReflection()->GetMessage(after, &field),
              field_path,
              changes);
    }
  }
}

}  // namespace

std::string Format(const FieldChange& change) {
  if (change.before.empty() && change.after.empty()) {
    return change.path + ": changed";
  }
  const auto text = [](const std::string& value) { return value.empty() ? "absent" : value; };
  return change.path + ": " + text(change.before) + " -> " + text(change.after);
}

std::vector<FieldChange> ChangesBetween(const v1::TrainingJob& before,
                                        const v1::TrainingJob& after) {
  std::vector<FieldChange> changes;
  Compare(before, after, "", changes);
  return changes;
}

}  // namespace adamant::job
