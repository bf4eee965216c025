#include "services/common/job/yaml/defaults.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "proto/adamant/v1/schema.pb.h"
#include "services/common/base/check.h"
#include "services/common/job/yaml/decode.h"
#include "services/common/job/yaml/schema.h"

namespace adamant::job {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;

/// Whether a message of this type comes into being by its defaults alone.
bool HasDefaults(const Descriptor& type) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (RulesOf(field).has_default_() ||
        (IsMessage(field) && !field.is_repeated() && !RulesOf(field).required() &&
         field.real_containing_oneof() == nullptr && HasDefaults(*field.message_type()))) {
      return true;
    }
  }
  return false;
}

/// Calls `visit(message, path)` for each message in `field` of `parent`.
template <class MessageType, class Visit>
void ForEachChild(MessageType& parent,
                  const FieldDescriptor& field,
                  const std::string& path,
                  Visit visit) {
  const auto& reflection = *parent.GetReflection();
  constexpr bool kConst = std::is_const_v<MessageType>;
  if (!field.is_repeated()) {
    if (reflection.HasField(parent, &field)) {
      if constexpr (kConst) {
        visit(reflection.GetMessage(parent, &field), path);
      } else {
        visit(*reflection.MutableMessage(&parent, &field), path);
      }
    }
    return;
  }
  for (int i = 0; i < reflection.FieldSize(parent, &field); ++i) {
    if constexpr (kConst) {
      visit(reflection.GetRepeatedMessage(parent, &field, i), ElementPath(path, i));
    } else {
      visit(*reflection.MutableRepeatedMessage(&parent, &field, i), ElementPath(path, i));
    }
  }
}

/// A field whose default is the value of another, or the most that it may be.
struct Copy {
  Message* message;
  const FieldDescriptor* field;
};

class Defaults {
 public:
  explicit Defaults(const Locations& given) : given_(given) {}

  void Fill(Message& message, const std::string& path) {
    // Fields with a `when` rule come second: it looks at a field that may have a default itself.
    for (const bool conditional : {false, true}) {
      for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
        const FieldDescriptor& field = *message.GetDescriptor()->field(i);
        if (RulesOf(field).when().empty() != conditional) {
          FillField(message, field, FieldPath(path, field.json_name()));
        }
      }
    }
  }

  void Resolve(const Message& root) const {
    for (const Copy& copy : copies_) {
      CopyFrom(root, copy);
    }
  }

 private:
  void FillField(Message& message, const FieldDescriptor& field, const std::string& path) {
    const v1::FieldRules& rules = RulesOf(field);
    const bool absent =
        !IsSet(message, field) && !given_.contains(path) && Applies(message, field).value_or(false);
    if (IsMessage(field)) {
      if (absent && rules.has_default_()) {
        StoreDefault(message, field, rules.default_());
      } else if (absent && !field.is_repeated() && !rules.required() &&
                 field.real_containing_oneof() == nullptr && HasDefaults(*field.message_type())) {
        message.GetReflection()->MutableMessage(&message, &field);
      }
      ForEachChild(message, field, path, [&](Message& child, const std::string& child_path) {
        Fill(child, child_path);
      });
    } else if (absent && rules.has_default_()) {
      StoreDefault(message, field, rules.default_());
    } else if (absent && rules.has_default_from()) {
      copies_.push_back({&message, &field});
    }
  }

  /// Leaves the field absent if the other has no value (because the manifest gives it wrongly).
  static void CopyFrom(const Message& root, const Copy& copy) {
    std::istringstream names(RulesOf(*copy.field).default_from());
    const Message* message = &root;
    std::string name;
    while (std::getline(names, name, '.')) {
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByCamelcaseName(name);
      ADAMANT_CHECK(field != nullptr, "`default_from` names a field");
      if (!IsSet(*message, *field)) {
        return;
      }
      if (const std::optional<ScalarType> type = ScalarTypeOf(*field)) {
        const Scalar value = Load(*message, *field);
        const std::optional<Scalar> most = ParseScalar(*type, RulesOf(*copy.field).at_most());
        return Store(*copy.message, *copy.field, most ? std::min(value, *most) : value);
      }
      message = &message->GetReflection()->GetMessage(*message, field);
    }
  }

  const Locations& given_;
  std::vector<Copy> copies_;
};

class RuleChecker {
 public:
  RuleChecker(const Locations& given, Problems& problems) : given_(given), problems_(problems) {}

  void Check(const Message& message, const std::string& path) {
    if (!path.empty() && problems_.Names(path)) {
      return;  // it is no map, for example: what it lacks says nothing
    }
    const Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
      CheckOneof(message, *type.oneof_decl(i), path);
    }
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const std::string field_path = FieldPath(path, field.json_name());
      CheckField(message, field, field_path);
      if (IsMessage(field)) {
        ForEachChild(message, field, field_path, [&](const Message& child, const std::string& at) {
          Check(child, at);
        });
      }
    }
  }

 private:
  void CheckOneof(const Message& message, const OneofDescriptor& oneof, const std::string& path) {
    bool any_given = message.GetReflection()->HasOneof(message, &oneof);
    std::vector<std::string> members;
    for (int i = 0; i < oneof.field_count(); ++i) {
      members.push_back(oneof.field(i)->json_name());
      any_given = any_given || given_.contains(FieldPath(path, members.back()));
    }
    if (IsRequired(oneof) && !any_given) {
      problems_.Add(
          Locate(given_, path), path, "incomplete (required: one of " + Join(members) + ")");
    }
  }

  void CheckField(const Message& message, const FieldDescriptor& field, const std::string& path) {
    const std::optional<bool> applies = Applies(message, field);
    if (!applies) {
      return;  // the field it depends on has been reported
    }
    const bool given = given_.contains(path);
    if (given && !*applies) {
      const Condition condition = *ConditionOf(field);
      const Scalar chosen = Load(message, *condition.selector);
      problems_.Add(Locate(given_, path),
                    path,
                    "not used with " +
                        EnumText(*std::get<const google::protobuf::EnumValueDescriptor*>(chosen)) +
                        " (allowed with " + condition.selector->json_name() + ": " +
                        Join(condition.values) + ")");
    }
    if (RulesOf(field).required() && *applies && !given && !IsSet(message, field)) {
      problems_.Add(Locate(given_, path), path, "required, but missing" + Choices(field));
    }
  }

  /// The values that a missing field may take, where they are few.
  static std::string Choices(const FieldDescriptor& field) {
    const auto& allowed = RulesOf(field).allowed();
    const std::vector<std::string> texts =
        field.enum_type() != nullptr ? EnumTexts(*field.enum_type())
                                     : std::vector<std::string>(allowed.begin(), allowed.end());
    return texts.empty() ? "" : " (allowed: " + Join(texts) + ")";
  }

  const Locations& given_;
  Problems& problems_;
};

}  // namespace

void ApplyDefaults(Message& job, const Locations& given) {
  Defaults defaults(given);
  defaults.Fill(job, "");
  defaults.Resolve(job);
}

void CheckRules(const Message& job, const Locations& given, Problems& problems) {
  RuleChecker(given, problems).Check(job, "");
}

}  // namespace adamant::job
