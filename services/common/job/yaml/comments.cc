#include "services/common/job/yaml/comments.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <sstream>

namespace adamant::job {
namespace {

template <class AnyDescriptor>
std::string CommentOf(const AnyDescriptor* descriptor) {
  google::protobuf::SourceLocation location;
  if (descriptor == nullptr || !descriptor->GetSourceLocation(&location)) {
    return "";
  }
  std::istringstream words(location.leading_comments + location.trailing_comments);
  std::string text;
  for (std::string word; words >> word;) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

}  // namespace

Comments::Comments(const google::protobuf::FileDescriptorSet& files)
    : pool_(std::make_unique<google::protobuf::DescriptorPool>()) {
  for (const google::protobuf::FileDescriptorProto& file : files.file()) {
    pool_->BuildFile(file);
  }
}

Comments::~Comments() = default;

std::string Comments::Of(const google::protobuf::Descriptor& message) const {
  return CommentOf(pool_->FindMessageTypeByName(message.full_name()));
}

std::string Comments::Of(const google::protobuf::FieldDescriptor& field) const {
  return CommentOf(pool_->FindFieldByName(field.full_name()));
}

std::string Comments::Of(const google::protobuf::EnumValueDescriptor& value) const {
  return CommentOf(pool_->FindEnumValueByName(value.full_name()));
}

}  // namespace adamant::job
