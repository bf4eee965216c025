#include "services/common/dataset/digits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/dataset/digit_glyphs.h"
#include "services/common/dataset/idx.h"

namespace adamant::dataset {
namespace {

constexpr int kSide = kDigitSide;
constexpr std::uint64_t kPixels = std::uint64_t{kSide} * kSide;
constexpr std::uint64_t kBlockExamples = 500;  // claimed by a thread at a time
constexpr int kPiecesPerSpan = 6;              // straight pieces between two points of a curve

// How strong the distortions are. Lengths are in units of half the digit's height, unless said
// otherwise. Chosen so that a linear classifier stays below 93% and a small convolutional net
// exceeds 99%.
constexpr double kPointJitter = 0.05;
constexpr double kElastic = 0.07;
constexpr double kMaxRotation = 0.2;  // radians
constexpr double kMaxSlant = 0.35;
constexpr double kMaxShiftPixels = 1.7;
constexpr double kGapChance = 0.12;  // per stroke
constexpr int kMaxSpeckles = 6;      // per image

// A smooth random displacement of the plane: a few waves.
class ElasticField {
 public:
  explicit ElasticField(Rng& rng) {
    for (Wave& wave : waves_) {
      const double direction = rng.Uniform(0, 2 * std::numbers::pi);
      const double frequency = rng.Uniform(1.0, 3.5);
      wave = {frequency * std::cos(direction),
              frequency * std::sin(direction),
              rng.Uniform(0, 2 * std::numbers::pi),
              kElastic * rng.Normal(),
              kElastic * rng.Normal()};
    }
  }

  [[nodiscard]] Point Displace(Point p) const {
    Point moved = p;
    for (const Wave& wave : waves_) {
      const double s = std::sin(wave.kx * p.x + wave.ky * p.y + wave.phase);
      moved.x += wave.dx * s;
      moved.y += wave.dy * s;
    }
    return moved;
  }

 private:
  struct Wave {
    double kx, ky, phase, dx, dy;
  };
  std::array<Wave, 4> waves_;
};

// Slant, size, rotation and shift, from skeleton to pixel coordinates.
class AffineMap {
 public:
  explicit AffineMap(Rng& rng) {
    const double angle = rng.Uniform(-kMaxRotation, kMaxRotation);
    const double slant = rng.Uniform(-kMaxSlant, kMaxSlant);
    const double height = rng.Uniform(7.6, 10.4);
    const double width = height * rng.Uniform(0.7, 1.15);
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    xx_ = c * width;
    xy_ = -c * width * slant - s * height;
    yx_ = s * width;
    yy_ = -s * width * slant + c * height;
    x_ = kSide / 2.0 + rng.Uniform(-kMaxShiftPixels, kMaxShiftPixels);
    y_ = kSide / 2.0 + rng.Uniform(-kMaxShiftPixels, kMaxShiftPixels);
  }

  [[nodiscard]] Point Map(Point p) const {
    return {xx_ * p.x + xy_ * p.y + x_, yx_ * p.x + yy_ * p.y + y_};
  }

 private:
  double xx_, xy_, yx_, yy_, x_, y_;
};

// The pen: half its width at both ends of a stroke in pixels, the width of its soft edge, its ink.
struct Pen {
  double start_radius;
  double end_radius;
  double edge;
  double ink;  // 0 to 1

  explicit Pen(Rng& rng) {
    const double radius = rng.Uniform(0.7, 1.7);
    start_radius = radius * rng.Uniform(0.8, 1.2);
    end_radius = radius * rng.Uniform(0.8, 1.2);
    edge = rng.Uniform(0.7, 1.8);
    ink = rng.Uniform(0.75, 1.0);
  }
};

using Canvas = std::array<double, kPixels>;

Point CatmullRom(const std::array<Point, 4>& p, double t) {
  const auto blend = [t](double a, double b, double c, double d) {
    return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
  };
  return {blend(p[0].x, p[1].x, p[2].x, p[3].x), blend(p[0].y, p[1].y, p[2].y, p[3].y)};
}

// The stroke as a chain of short straight pieces.
std::vector<Point> Flatten(const Stroke& stroke, const std::vector<Point>& points) {
  std::vector<Point> chain;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const std::array<Point, 4> span = {points[i == 0 ? 0 : i - 1],
                                       points[i],
                                       points[i + 1],
                                       points[std::min(i + 2, points.size() - 1)]};
    for (int piece = 0; piece < kPiecesPerSpan; ++piece) {
      const double t = static_cast<double>(piece) / kPiecesPerSpan;
      chain.push_back(stroke.smooth ? CatmullRom(span, t)
                                    : Point{span[1].x + t * (span[2].x - span[1].x),
                                            span[1].y + t * (span[2].y - span[1].y)});
    }
  }
  chain.push_back(points.back());
  return chain;
}

// Raises the canvas to the ink of a piece from `a` to `b`, by each pixel's distance from it.
void DrawPiece(Canvas& canvas, Point a, Point b, double radius, const Pen& pen) {
  const double reach = radius + 0.5 * pen.edge;  // there is no ink beyond
  const double reach_squared = reach * reach;
  const auto first = [reach](double u, double v) {
    return std::max(0, static_cast<int>(std::floor(std::min(u, v) - reach - 0.5)));
  };
  const auto last = [reach](double u, double v) {
    return std::min(kSide - 1, static_cast<int>(std::ceil(std::max(u, v) + reach - 0.5)));
  };
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  const double length_squared = dx * dx + dy * dy + 1e-12;
  for (int y = first(a.y, b.y); y <= last(a.y, b.y); ++y) {
    for (int x = first(a.x, b.x); x <= last(a.x, b.x); ++x) {
      const double px = x + 0.5 - a.x;
      const double py = y + 0.5 - a.y;
      const double t = std::clamp((px * dx + py * dy) / length_squared, 0.0, 1.0);
      const double away_x = px - t * dx;
      const double away_y = py - t * dy;
      const double squared = away_x * away_x + away_y * away_y;
      if (squared > reach_squared) {
        continue;
      }
      const double edge = (radius - std::sqrt(squared)) / pen.edge;
      const double value = pen.ink * std::clamp(edge + 0.5, 0.0, 1.0);
      double& pixel = canvas[static_cast<std::size_t>(y) * kSide + x];
      pixel = std::max(pixel, value);
    }
  }
}

void DrawStroke(Canvas& canvas, const std::vector<Point>& chain, const Pen& pen, Rng& rng) {
  const std::size_t pieces = chain.size() - 1;
  std::size_t gap_begin = pieces;
  std::size_t gap_end = pieces;
  if (rng.Uniform() < kGapChance) {
    gap_begin = rng.Below(pieces);
    gap_end = gap_begin + 1 + rng.Below(std::max<std::size_t>(1, pieces / 10));
  }
  for (std::size_t i = 0; i < pieces; ++i) {
    if (i >= gap_begin && i < gap_end) {
      continue;
    }
    const double t = static_cast<double>(i) / static_cast<double>(pieces);
    const double radius = pen.start_radius + t * (pen.end_radius - pen.start_radius);
    DrawPiece(canvas, chain[i], chain[i + 1], radius, pen);
  }
}

// Grain where there is ink, a few speckles anywhere: most of the background stays 0, so that files
// compress.
void AddNoise(Canvas& canvas, Rng& rng) {
  const double grain = rng.Uniform(0.0, 0.12);
  for (double& pixel : canvas) {
    if (pixel > 0) {
      pixel += grain * rng.Normal();
    }
  }
  const std::uint64_t speckles = rng.Below(kMaxSpeckles + 1);
  for (std::uint64_t i = 0; i < speckles; ++i) {
    double& pixel = canvas[rng.Below(kPixels)];
    pixel = std::max(pixel, rng.Uniform(0.1, 0.6));
  }
}

// Of the example that these numbers draw: the first of them.
std::uint8_t DrawLabel(Rng& rng) { return static_cast<std::uint8_t>(rng.Below(10)); }

}  // namespace

std::uint8_t DigitLabel(std::uint64_t seed, std::uint64_t index) {
  Rng rng(MixSeed(seed, index));
  return DrawLabel(rng);
}

std::uint8_t DrawDigit(std::uint64_t seed, std::uint64_t index, std::span<std::uint8_t> pixels) {
  Rng rng(MixSeed(seed, index));
  const std::uint8_t label = DrawLabel(rng);
  const std::span<const Glyph> glyphs = GlyphsOf(label);
  const Glyph& glyph = glyphs[rng.Below(glyphs.size())];
  const ElasticField elastic(rng);
  const AffineMap affine(rng);
  const Pen pen(rng);
  Canvas canvas = {};
  for (const Stroke& stroke : glyph) {
    std::vector<Point> points = stroke.points;
    for (Point& point : points) {
      point.x += kPointJitter * rng.Normal();
      point.y += kPointJitter * rng.Normal();
    }
    std::vector<Point> chain = Flatten(stroke, points);
    for (Point& point : chain) {
      point = affine.Map(elastic.Displace(point));
    }
    DrawStroke(canvas, chain, pen, rng);
  }
  AddNoise(canvas, rng);
  for (std::uint64_t i = 0; i < kPixels; ++i) {
    pixels[i] = static_cast<std::uint8_t>(std::lround(255 * std::clamp(canvas[i], 0.0, 1.0)));
  }
  return label;
}

Dataset GenerateDigits(const DigitsOptions& options, const DigitsProgress& progress) {
  Dataset digits{.channels = 1, .height = kSide, .width = kSide, .images = {}, .labels = {}};
  digits.images.resize(options.examples * kPixels);
  digits.labels.resize(options.examples);
  std::atomic<std::uint64_t> claimed = 0;
  std::atomic<std::uint64_t> done = 0;
  // Draws one block; false when none is left.
  const auto draw_block = [&]() {
    const std::uint64_t begin = claimed.fetch_add(kBlockExamples);
    if (begin >= options.examples) {
      return false;
    }
    const std::uint64_t end = std::min(begin + kBlockExamples, options.examples);
    for (std::uint64_t i = begin; i < end; ++i) {
      digits.labels[i] =
          DrawDigit(options.seed, i, std::span(digits.images).subspan(i * kPixels, kPixels));
    }
    done += end - begin;
    return true;
  };
  const unsigned threads =
      options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < threads; ++i) {
    helpers.emplace_back([&draw_block] {
      while (draw_block()) {
      }
    });
  }
  while (draw_block()) {
    if (progress) {
      progress(done, options.examples);
    }
  }
  helpers.clear();
  if (progress) {
    progress(options.examples, options.examples);
  }
  return digits;
}

absl::Status WriteDigits(const std::string& folder,
                         const DigitsFilesOptions& options,
                         const DigitsProgress& progress) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return SystemError(error.value(), "cannot create the folder", folder);
  }
  const std::uint64_t total = options.train_examples + options.validation_examples;
  struct Part {
    const char* prefix;
    std::uint64_t seed;
    std::uint64_t examples;
    std::uint64_t before;
  };
  const Part parts[] = {
      {"train", options.seed, options.train_examples, 0},
      {"t10k", options.validation_seed, options.validation_examples, options.train_examples}};
  for (const Part& part : parts) {
    const DigitsOptions digits{.seed = part.seed, .examples = part.examples};
    const Dataset set = GenerateDigits(digits, [&](std::uint64_t done, std::uint64_t) {
      if (progress) {
        progress(part.before + done, total);
      }
    });
    ADAMANT_RETURN_IF_ERROR(WriteIdx(set, MnistPaths(folder, part.prefix)));
  }
  return absl::OkStatus();
}

}  // namespace adamant::dataset
