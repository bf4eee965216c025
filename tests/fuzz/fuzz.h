#pragma once

#include <string>
#include <string_view>
#include <vector>

// What a target of tests/fuzz says of itself, and what targets share. A target is a program of one
// source that defines Seeds and Try; fuzz.cc makes it one of libFuzzer's.
namespace adamant::fuzz {

// --- Defined by each target

/// Inputs to begin with, made by the product's own writers: Try accepts each.
std::vector<std::string> Seeds();

/// Gives `input` to what reads it, and checks what must hold of what is accepted. Returns whether
/// it was.
bool Try(std::string_view input);

// --- Inputs of several pieces

/// Of each piece the length (16 bits, little-endian; pieces are shorter than 64 KiB), then its
/// bytes.
std::string Join(const std::vector<std::string>& pieces);

/// The inverse. A piece that claims to be longer than the rest is the rest.
std::vector<std::string> Split(std::string_view input);

// --- Checksums, which no mutation would ever get right

/// `content` with its XXH3 behind it, little-endian.
std::string Sealed(std::string_view content);

/// The inverse, without looking at the checksum.
std::string Unsealed(std::string_view sealed);

// --- Files

/// A file in memory, for what reads paths. Threads: one at a time.
class ScratchFile {
 public:
  ScratchFile();
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  /// Puts `content` in place of what there was.
  void Set(std::string_view content);

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const int descriptor_;
  const std::string path_;
};

}  // namespace adamant::fuzz
