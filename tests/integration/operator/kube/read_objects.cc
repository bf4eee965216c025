// Reads TrainingJobs as the operator does, for crd_test.py: an object as JSON on each line of the
// input, and for each a line of the output: {"problems": ["PATH: MESSAGE", ...]} or
// {"manifest": "..."}, which has every default.

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube/schema/job_object.h"
#include "proto/adamant/v1/job.pb.h"

int main() {
  using nlohmann::json;
  for (std::string line; std::getline(std::cin, line);) {
    const adamant::job::ParseResult result =
        adamant::kube::ReadJob(json::parse(line, nullptr, false));
    json told = json::object();
    if (result.job != nullptr) {
      told["manifest"] = adamant::job::ToYaml(*result.job);
    }
    for (const adamant::job::Diagnostic& problem : result.problems) {
      told["problems"].push_back(adamant::job::Format(problem).substr(2));  // after ": "
    }
    std::cout << told.dump() << "\n" << std::flush;
  }
}
