#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/kernels/kernel.h"

// For the *_onednn.cc files and kernel_bench alone: no other header or source may include it.
namespace adamant::kernels::internal {

/// State that the kernels of one thread share: engine, stream, and scratch memory, of which each
/// primitive needs some while it runs.
class OneDnn {
 public:
  OneDnn() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  [[nodiscard]] const dnnl::engine& engine() const { return engine_; }
  [[nodiscard]] dnnl_stream_t stream() const { return stream_.get(); }

  /// Grows the scratch memory to the need of a primitive; before training.
  void Reserve(const dnnl::memory::desc& scratch);
  [[nodiscard]] dnnl_memory_t scratch() const { return scratch_.get(); }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory scratch_;
};

/// Throws std::bad_alloc unless there is room for the code that oneDNN generates for a primitive,
/// or for all products. Where there is none, oneDNN 2.6 writes it through a null pointer: its
/// assembler is built without exceptions, and nobody looks at its error. Another thread may take
/// the room meanwhile, which is unlikely, as this asks for more than twice what has been seen.
void RequireRoomForCode();

/// Generates the code of dnnl_sgemm, which else the first product does, once that is needed.
/// Throws: as RequireRoomForCode.
void PrepareProducts();

/// Attributes of every primitive: scratch memory comes from us.
dnnl::primitive_attr UserScratch();

/// Returns whether the implementation behind a description is oneDNN's reference, hundreds of times
/// slower than the others.
template <class PrimitiveDesc>
bool IsSlow(const PrimitiveDesc& desc) {
  return std::string_view(desc.impl_info_str()).starts_with("ref");
}

/// Kernel::name of what is behind a description.
template <class PrimitiveDesc>
std::string NameOf(const PrimitiveDesc& desc) {
  return std::string("oneDNN ") + desc.impl_info_str();
}

/// A primitive with the memory it works on. Where our layout differs from the one it wants, the
/// operand is reordered before or after, through a buffer of its own. Run allocates nothing of
/// ours.
/// Threads: one, that of its OneDnn.
class Operation {
 public:
  template <class PrimitiveDesc>
  Operation(OneDnn& dnn, const dnnl::primitive& primitive, const PrimitiveDesc& desc)
      : dnn_(dnn), primitive_(primitive) {
    dnn.Reserve(desc.scratchpad_desc());
  }

  /// Declares the next operand of Run: how it lies with us, and how the primitive wants it.
  void Input(int arg, const dnnl::memory::desc& ours, const dnnl::memory::desc& wanted);
  void Output(int arg, const dnnl::memory::desc& ours, const dnnl::memory::desc& made);

  /// `pointers`: one per declared operand, in that order; inputs are not written to.
  void Run(std::initializer_list<const void*> pointers);

 private:
  struct Operand {
    dnnl::memory ours;      // its pointer is set by every Run
    dnnl::memory buffer;    // empty when the primitive takes ours as it is
    dnnl::reorder reorder;  // between the two
    bool is_output = false;
  };

  void Add(int arg, const dnnl::memory::desc& ours, const dnnl::memory::desc& theirs, bool output);
  void Reorder(const Operand& operand) const;

  OneDnn& dnn_;
  dnnl::primitive primitive_;
  std::vector<Operand> operands_;
  std::vector<dnnl_exec_arg_t> args_;  // one per operand
  std::vector<dnnl_exec_arg_t> call_;  // args_ and the scratch memory
};

/// {batch, channels, height, width} and how our maps lie.
dnnl::memory::dims MapDims(std::int64_t batch, const Shape& shape);
dnnl::memory::desc MapDesc(std::int64_t batch, const Shape& shape, dnnl::memory::format_tag tag);

// One factory per source file. They throw dnnl::error; the backend catches it.
std::unique_ptr<Kernel<float>> MakeConv2dOneDnn(OneDnn& dnn, const Spec& spec);
std::unique_ptr<Kernel<float>> MakePoolOneDnn(OneDnn& dnn, const Spec& spec);
std::unique_ptr<Kernel<float>> MakeElementwiseOneDnn(OneDnn& dnn, const Spec& spec);

}  // namespace adamant::kernels::internal
