#include <google/protobuf/struct.pb.h>

#include <array>
#include <string>
#include <utility>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/semantics.h"
#include "services/common/job/yaml/schema.h"

namespace adamant::job {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

class TemplateChecker {
 public:
  TemplateChecker(std::string path, const Locations& given, Problems& problems)
      : path_(std::move(path)), given_(given), problems_(problems) {}

  void Check(const Struct& spec) {
    const auto policy = spec.fields().find("restartPolicy");
    if (policy != spec.fields().end() && policy->second.string_value() != "Never") {
      Report(FieldPath(path_, "restartPolicy"),
             "a process that ended is started again in a new pod (allowed: Never)");
    }
    for (const char* list : {"containers", "initContainers", "volumes"}) {
      const auto field = spec.fields().find(list);
      if (field != spec.fields().end()) {
        CheckNamed(FieldPath(path_, list), field->second);
      }
    }
  }

 private:
  /// Elements of these lists are merged by their names.
  void CheckNamed(const std::string& path, const Value& list) {
    if (!list.has_list_value()) {
      Report(path, "expected a list");
      return;
    }
    for (int i = 0; i < list.list_value().values_size(); ++i) {
      const auto& fields = list.list_value().values(i).struct_value().fields();
      const auto name = fields.find("name");
      if (name == fields.end() || name->second.string_value().empty()) {
        Report(FieldPath(ElementPath(path, static_cast<std::size_t>(i)), "name"),
               "required, but missing");
      }
    }
  }

  void Report(const std::string& path, std::string message) {
    problems_.Add(Locate(given_, path), path, std::move(message));
  }

  const std::string path_;
  const Locations& given_;
  Problems& problems_;
};

}  // namespace

void CheckPods(const v1::JobSpec& spec, const Locations& given, Problems& problems) {
  const v1::Pods& pods = spec.pods();
  const std::array<std::pair<const char*, const v1::PodTemplate*>, 3> templates = {
      {{"spec.pods.worker.spec", &pods.worker()},
       {"spec.pods.dataServer.spec", &pods.data_server()},
       {"spec.pods.parameterServer.spec", &pods.parameter_server()}}};
  for (const auto& [path, pod] : templates) {
    TemplateChecker(path, given, problems).Check(pod->spec());
  }
}

}  // namespace adamant::job
