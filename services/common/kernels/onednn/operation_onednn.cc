#include "services/common/kernels/onednn/operation_onednn.h"

#include <algorithm>
#include <new>

#include "services/common/base/check.h"
#include "services/common/base/system/room.h"

namespace adamant::kernels::internal {

using dnnl::memory;

void RequireRoomForCode() {
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  if (!HasRoomFor(kBytes)) {
    throw std::bad_alloc();
  }
}

void PrepareProducts() {
  static const dnnl_status_t kPrepared = [] {
    RequireRoomForCode();
    constexpr int kSide = 4;
    const float factor[kSide * kSide] = {};
    float product[kSide * kSide];
    return dnnl_sgemm(
        'N', 'N', kSide, kSide, kSide, 1, factor, kSide, factor, kSide, 0, product, kSide);
  }();
  ADAMANT_CHECK(kPrepared == dnnl_success, "a product of small matrices");
}

void OneDnn::Reserve(const memory::desc& scratch) {
  const auto bytes = static_cast<memory::dim>(std::max<std::size_t>(scratch.get_size(), 64));
  if (!scratch_ || static_cast<memory::dim>(scratch_.get_desc().get_size()) < bytes) {
    scratch_ = memory({{bytes}, memory::data_type::u8, memory::format_tag::x}, engine_);
  }
}

dnnl::primitive_attr UserScratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

void Operation::Input(int arg, const memory::desc& ours, const memory::desc& wanted) {
  Add(arg, ours, wanted, false);
}

void Operation::Output(int arg, const memory::desc& ours, const memory::desc& made) {
  Add(arg, ours, made, true);
}

void Operation::Add(int arg, const memory::desc& ours, const memory::desc& theirs, bool output) {
  Operand operand{.ours = memory(ours, dnn_.engine(), nullptr),
                  .buffer = {},
                  .reorder = {},
                  .is_output = output};
  if (ours != theirs) {
    operand.buffer = memory(theirs, dnn_.engine());
    const auto [from, to] = output ? std::pair(theirs, ours) : std::pair(ours, theirs);
    const dnnl::reorder::primitive_desc desc(dnn_.engine(), from, dnn_.engine(), to, UserScratch());
    dnn_.Reserve(desc.scratchpad_desc());
    operand.reorder = dnnl::reorder(desc);
  }
  args_.push_back({arg, (operand.buffer ? operand.buffer : operand.ours).get()});
  operands_.push_back(std::move(operand));
  call_ = args_;
  call_.push_back({DNNL_ARG_SCRATCHPAD, nullptr});
}

void Operation::Run(std::initializer_list<const void*> pointers) {
  ADAMANT_CHECK(pointers.size() == operands_.size(), "a pointer per operand");
  const void* const* pointer = pointers.begin();
  for (Operand& operand : operands_) {
    // The library's handles are not const; inputs are read only.
    dnnl_memory_set_data_handle(operand.ours.get(), const_cast<void*>(*pointer++));
    if (operand.buffer && !operand.is_output) {
      Reorder(operand);
    }
  }
  call_.back().memory = dnn_.scratch();
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), dnn_.stream(), static_cast<int>(call_.size()), call_.data());
  ADAMANT_CHECK(status == dnnl_success, "oneDNN runs what it accepted when it was made");
  for (const Operand& operand : operands_) {
    if (operand.buffer && operand.is_output) {
      Reorder(operand);
    }
  }
}

void Operation::Reorder(const Operand& operand) const {
  dnnl_memory_t from = operand.is_output ? operand.buffer.get() : operand.ours.get();
  dnnl_memory_t to = operand.is_output ? operand.ours.get() : operand.buffer.get();
  const dnnl_exec_arg_t args[] = {
      {DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, dnn_.scratch()}};
  const dnnl_status_t status =
      dnnl_primitive_execute(operand.reorder.get(), dnn_.stream(), 3, args);
  ADAMANT_CHECK(status == dnnl_success, "oneDNN runs what it accepted when it was made");
}

memory::dims MapDims(std::int64_t batch, const Shape& shape) {
  return {batch, shape[0], shape[1], shape[2]};
}

memory::desc MapDesc(std::int64_t batch, const Shape& shape, memory::format_tag tag) {
  return {MapDims(batch, shape), memory::data_type::f32, tag};
}

}  // namespace adamant::kernels::internal
