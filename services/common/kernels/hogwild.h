#pragma once

#include <span>

namespace adamant::kernels {

// Where threads touch memory that others write without a lock.
//
// Training threads share the worker's weights (Hogwild). What a race can lose here is an update of
// a local copy, which the next fetch repairs; what is pushed is kept apart, per thread. Aligned
// 32-bit loads and stores are whole on every machine we run on, so a reader sees some old or new
// value, never a mixture. Relaxed atomics would say the same to the language, but compilers do not
// vectorise them (6 to 10 times slower), so these functions use plain vector code, are kept out of
// line, and are exempt from ThreadSanitizer by name. Everything else is checked.
//
// Kernels that read the shared weights in place (Kernel::ReadsSharedWeights) race in the same way:
// oneDNN's inside the library, our own in functions marked as these are (races.h).
//
// Two threads that sweep the same weights in step fight for every cache line: let each start at
// another place (GradientSink::start).
//
// All: sizes of the two spans are equal and the spans do not overlap. `shared` is the racing side.
// Source: Recht, Re, Wright and Niu 2011, "Hogwild!".

/// shared[i] += delta[i]
void HogwildAdd(std::span<float> shared, std::span<const float> delta);

/// shared[i] += scale * x[i]
void HogwildAxpy(std::span<float> shared, float scale, std::span<const float> x);

/// shared[i] = values[i]
void HogwildStore(std::span<float> shared, std::span<const float> values);

/// values[i] = shared[i]
void HogwildLoad(std::span<const float> shared, std::span<float> values);

}  // namespace adamant::kernels
