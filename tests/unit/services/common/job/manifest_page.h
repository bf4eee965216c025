#pragma once

#include <string>

namespace adamant::job {

class Comments;

/// The reference page of manifests (docs/manifest.md): every message of job.proto with its fields,
/// types, defaults and ranges from the compiled schema, and the comments.
std::string ManifestPage(const Comments& comments);

}  // namespace adamant::job
