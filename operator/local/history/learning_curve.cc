#include "operator/local/history/learning_curve.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>

namespace adamant::local {
namespace {

using controller::EpochResult;

constexpr double kWidth = 760;
constexpr double kPlotLeft = 64;
constexpr double kPlotRight = 736;
constexpr double kPlotHeight = 180;
constexpr double kFirstTop = 56;
constexpr double kSecondTop = 300;
constexpr double kHeight = 530;

// More points than this cannot be told apart at this width.
constexpr std::size_t kMostPoints = 600;

constexpr char kStyle[] =
    "<style>text{font:12px sans-serif;fill:#555}.title{font-size:15px;fill:#222}"
    ".grid{stroke:#ddd}.axis{stroke:#888}polyline{fill:none;stroke-width:2;stroke-linejoin:round}"
    ".undone{fill:none;stroke-width:4;stroke-linecap:round;opacity:0.35}"
    ".background{fill:#fff}</style>\n";

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Text(double x, double y, const std::string& anchor, const std::string& text) {
  return "<text x=\"" + Number(x) + "\" y=\"" + Number(y) + "\" text-anchor=\"" + anchor + "\">" +
         Escape(text) + "</text>\n";
}

std::string Line(const std::string& kind, double x1, double y1, double x2, double y2) {
  return "<line class=\"" + kind + "\" x1=\"" + Number(x1) + "\" y1=\"" + Number(y1) + "\" x2=\"" +
         Number(x2) + "\" y2=\"" + Number(y2) + "\"/>\n";
}

struct Range {
  double low = 0;
  double high = 1;
  double step = 1;
};

// The values, widened to round numbers.
Range RangeOf(const std::vector<double>& values, int most_steps) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  Range range{.low = *low, .high = *high};
  // Of numbers that differ by less no step can be told, and the axis would have no length.
  if (range.high - range.low < 1e-9 * std::max({1.0, std::abs(range.low), std::abs(range.high)})) {
    range.low -= std::max(std::abs(range.low) * 0.05, 1e-3);
    range.high += std::max(std::abs(range.high) * 0.05, 1e-3);
  }
  range.step = RoundStep(range.high - range.low, most_steps);
  range.low = std::floor(range.low / range.step) * range.step;
  range.high = std::ceil(range.high / range.step) * range.step;
  return range;
}

// None: not known of this epoch.
using Value = std::function<std::optional<double>(const EpochResult&)>;

std::optional<double> IfFinite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

Value Measured(double EpochResult::*field, double scale) {
  return [=](const EpochResult& row) {
    return row.is_measured() ? IfFinite(scale * row.*field) : std::nullopt;
  };
}

Value Validated(double EpochResult::*field, double scale) {
  return [=](const EpochResult& row) {
    return row.is_validated() ? IfFinite(scale * row.*field) : std::nullopt;
  };
}

struct Series {
  std::string name;
  std::string colour;
  Value value;
};

// What a job has come through, in the order of the epochs, and what it has undone.
struct History {
  std::vector<EpochResult> kept;
  std::vector<EpochResult> undone;
};

// A result is undone when the job was at its epoch, or before it, once more.
History HistoryOf(const std::vector<EpochResult>& results) {
  History history;
  for (const EpochResult& result : results) {
    const auto again = std::ranges::lower_bound(
        history.kept, result.epoch, {}, [](const EpochResult& row) { return row.epoch; });
    history.undone.insert(history.undone.end(), again, history.kept.end());
    history.kept.erase(again, history.kept.end());
    history.kept.push_back(result);
  }
  return history;
}

// One plot: axes with round numbers, grid, legend, and a line per series. Losses of what was undone
// may be huge: the axes are those of what counts.
class Plot {
 public:
  Plot(double top, const History& history, const std::vector<Series>& all)
      : top_(top), rows_(history.kept), undone_(history.undone), series_(all) {
    std::vector<double> values;
    for (const Series& series : series_) {
      for (const EpochResult& row : rows_) {
        if (const std::optional<double> value = series.value(row)) {
          values.push_back(*value);
        }
      }
    }
    y_ = values.empty() ? Range{} : RangeOf(values, 5);
    DataEpoch first = rows_.front().epoch;
    DataEpoch last = rows_.back().epoch;
    for (const EpochResult& row : undone_) {
      first = std::min(first, row.epoch);
      last = std::max(last, row.epoch);
    }
    first_ = static_cast<double>(first);
    last_ = std::max(static_cast<double>(last), first_ + 1);
  }

  [[nodiscard]] std::string Draw() const { return Axes() + Lines(); }

 private:
  [[nodiscard]] double X(double epoch) const {
    return kPlotLeft + (epoch - first_) / (last_ - first_) * (kPlotRight - kPlotLeft);
  }
  [[nodiscard]] double Y(double value) const {
    return top_ + kPlotHeight - (value - y_.low) / (y_.high - y_.low) * kPlotHeight;
  }

  [[nodiscard]] std::string Axes() const {
    std::string svg;
    const int steps = static_cast<int>(std::lround((y_.high - y_.low) / y_.step));
    for (int i = 0; i <= steps; ++i) {
      const double value = y_.low + i * y_.step;
      svg += Line("grid", kPlotLeft, Y(value), kPlotRight, Y(value));
      svg += Text(kPlotLeft - 8, Y(value) + 4, "end", Number(value));
    }
    const double step = std::max(1.0, RoundStep(last_ - first_, 12));
    const auto ticks = static_cast<int>(std::floor(last_ / step));
    for (auto tick = static_cast<int>(std::ceil(first_ / step)); tick <= ticks; ++tick) {
      const double epoch = tick * step;
      svg += Line("axis", X(epoch), top_ + kPlotHeight, X(epoch), top_ + kPlotHeight + 4);
      svg += Text(X(epoch), top_ + kPlotHeight + 18, "middle", Number(epoch));
    }
    return svg + Line("axis", kPlotLeft, top_ + kPlotHeight, kPlotRight, top_ + kPlotHeight);
  }

  [[nodiscard]] std::string Lines() const {
    std::string svg;
    double legend = kPlotLeft;
    const std::size_t stride = rows_.size() / kMostPoints + 1;
    for (const Series& series : series_) {
      std::vector<std::pair<double, double>> points;
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        const EpochResult& row = rows_[i];
        const std::optional<double> value = series.value(row);
        if (value && (i % stride == 0 || i + 1 == rows_.size())) {
          points.emplace_back(X(static_cast<double>(row.epoch)), Y(*value));
        }
      }
      svg += Curve(points, series.colour) + Dots(series);
      svg += "<rect x=\"" + Number(legend) + "\" y=\"" + Number(top_ - 16) +
             "\" width=\"14\" height=\"3\" fill=\"" + series.colour + "\"/>\n";
      svg += Text(legend + 20, top_ - 10, "start", series.name);
      legend += 40 + 7.0 * static_cast<double>(series.name.size());
    }
    return svg;
  }

  // A line of one point alone would not be seen.
  [[nodiscard]] static std::string Curve(const std::vector<std::pair<double, double>>& points,
                                         const std::string& colour) {
    if (points.size() == 1) {
      return "<circle fill=\"" + colour + "\" cx=\"" + Number(points[0].first) + "\" cy=\"" +
             Number(points[0].second) + "\" r=\"3\"/>\n";
    }
    std::string svg = "<polyline stroke=\"" + colour + "\" points=\"";
    for (const auto& [x, y] : points) {
      svg += Number(x) + "," + Number(y) + " ";
    }
    return svg + "\"/>\n";
  }

  // What was undone; a dot is a line without length that has round ends.
  [[nodiscard]] std::string Dots(const Series& series) const {
    std::string path;
    const std::size_t stride = undone_.size() / kMostPoints + 1;
    for (std::size_t i = 0; i < undone_.size(); i += stride) {
      if (const std::optional<double> value = series.value(undone_[i])) {
        const double shown = std::clamp(*value, y_.low, y_.high);
        path +=
            "M" + Number(X(static_cast<double>(undone_[i].epoch))) + "," + Number(Y(shown)) + "h0";
      }
    }
    return path.empty()
               ? ""
               : "<path class=\"undone\" stroke=\"" + series.colour + "\" d=\"" + path + "\"/>\n";
  }

  const double top_;
  const std::vector<EpochResult>& rows_;
  const std::vector<EpochResult>& undone_;
  const std::vector<Series>& series_;
  Range y_;
  double first_ = 0;
  double last_ = 1;
};

}  // namespace

double RoundStep(double range, int most) {
  const double rough = range / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) {
      return factor * power;
    }
  }
  return 10 * power;
}

std::string DrawLearningCurve(const std::string& job, const std::vector<EpochResult>& results) {
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + Number(kWidth) +
                    " " + Number(kHeight) + "\" width=\"" + Number(kWidth) + "\" height=\"" +
                    Number(kHeight) + "\">\n";
  svg += kStyle;
  svg += "<rect class=\"background\" width=\"100%\" height=\"100%\"/>\n";
  svg +=
      "<text class=\"title\" x=\"" + Number(kPlotLeft) + "\" y=\"24\">" + Escape(job) + "</text>\n";
  if (!results.empty()) {
    const std::vector<Series> losses = {
        {"training loss", "#c0562f", Measured(&EpochResult::training_loss, 1)},
        {"validation loss", "#7a5ea8", Validated(&EpochResult::validation_loss, 1)}};
    const std::vector<Series> accuracies = {
        {"training accuracy, %", "#8aa9c8", Measured(&EpochResult::training_accuracy, 100)},
        {"top-1 on validation data, %", "#1f6fb2", Validated(&EpochResult::top1, 100)}};
    const History history = HistoryOf(results);
    svg += Plot(kFirstTop, history, losses).Draw();
    svg += Plot(kSecondTop, history, accuracies).Draw();
    svg += Text((kPlotLeft + kPlotRight) / 2,
                kHeight - 12,
                "middle",
                history.undone.empty() ? "epoch" : "epoch (dots: undone, as the job went back)");
  }
  return svg + "</svg>\n";
}

}  // namespace adamant::local
