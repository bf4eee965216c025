#pragma once

/// Protobuf's header of the same name, with the layout of the library that is linked. It gives
/// `MapFieldBase` two members more where ThreadSanitizer is on, which Debian's library was not
/// built with: sources would look for a map, such as that of `Struct`, eight bytes behind where it
/// is. Only builds with ThreadSanitizer see this folder (cmake/Project.cmake).

// Before the macro goes: the standard library decides by it too, once and for all.
#include <condition_variable>  // IWYU pragma: keep

#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include_next <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")
