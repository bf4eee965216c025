#include "operator/cli/warnings/transformations_warning.h"

#include <algorithm>
#include <cmath>

#include "operator/cli/console/text.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"
#include "services/common/model/model.h"

namespace adamant::cli {
namespace {

// Usual ones spread pixels over 2 to 5, and go up to about 3.
constexpr double kLeastSpread = 0.1;
constexpr double kMost = 50;

}  // namespace

std::string NormaliseWarning(const v1::TrainingJob& job) {
  const v1::Normalise& normalise = job.spec().data().transformations().normalise();
  const double deviation = normalise.has_deviation() ? normalise.deviation() : 1;
  const double dark = (0 - normalise.mean()) / deviation;  // no -0
  const double bright = (1 - normalise.mean()) / deviation;
  if (bright - dark >= kLeastSpread && std::max(std::abs(dark), std::abs(bright)) <= kMost) {
    return "";
  }
  return Text(
      "spec.data.transformations.normalise: pixels run from 0 to 1 before it, and from %.4g to "
      "%.4g after it, of which nets hardly learn; mean and deviation of bytes are to be divided "
      "by 255",
      dark,
      bright);
}

std::string ShiftWarning(const v1::TrainingJob& job) {
  const double shift = job.spec().data().transformations().translate();
  const Shape input = job::NetOf(job).input;  // channels, height, width
  const auto side = static_cast<double>(std::min(input[1], input[2]));
  return shift < side / 2 ? ""
                          : Text(
                                "spec.data.transformations.translate: with %g images of %g "
                                "pixels are shifted out of sight",
                                shift,
                                side);
}

}  // namespace adamant::cli
