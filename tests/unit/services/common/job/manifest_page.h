#pragma once

#include <string>

namespace google::protobuf {
class FileDescriptorSet;
}

namespace adamant::job {

/// The reference page of manifests (docs/manifest.md): every message of job.proto with its fields,
/// types, defaults and ranges from the compiled schema, and the comments from `files`: job.proto
/// and what it imports, imports first, with source info.
std::string ManifestPage(const google::protobuf::FileDescriptorSet& files);

}  // namespace adamant::job
