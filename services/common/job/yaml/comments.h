#pragma once

#include <memory>
#include <string>

namespace google::protobuf {
class Descriptor;
class DescriptorPool;
class EnumValueDescriptor;
class FieldDescriptor;
class FileDescriptorSet;
}  // namespace google::protobuf

namespace adamant::job {

/// The comments of the .proto files, for what is generated from them. Threads: const calls from
/// any.
class Comments {
 public:
  /// `files` are the files and what they import, imports first, with source info.
  explicit Comments(const google::protobuf::FileDescriptorSet& files);
  ~Comments();

  /// On one line; "" if there is none.
  [[nodiscard]] std::string Of(const google::protobuf::Descriptor& message) const;
  [[nodiscard]] std::string Of(const google::protobuf::FieldDescriptor& field) const;
  [[nodiscard]] std::string Of(const google::protobuf::EnumValueDescriptor& value) const;

 private:
  const std::unique_ptr<google::protobuf::DescriptorPool> pool_;
};

}  // namespace adamant::job
