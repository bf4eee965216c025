#pragma once

#include <string>

namespace adamant::job {

/// One problem of a manifest.
struct Diagnostic {
  std::string file;
  int line = 0;            ///< from 1; 0: the file as a whole
  int column = 0;          ///< from 1
  std::string field_path;  ///< "spec.model.network.layers[2].kernel"; may be empty
  std::string message;     ///< what is wrong and what is allowed
  std::string hint;        ///< "did you mean optimiser?"; may be empty
};

/// One line for people: "job.yaml:3:5: spec.optimizer: unknown field (allowed: model, ...); did you
/// mean optimiser?"
std::string Format(const Diagnostic& diagnostic);

}  // namespace adamant::job
