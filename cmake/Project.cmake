# How every target of the project is built: language level, warnings, sanitizers, and the two functions that declare
# libraries and tests. Nothing else is global.

include(CheckCXXCompilerFlag)

option(BUILD_TESTING "Build the tests and the benchmarks" ON)
option(ADAMANT_WERROR "Treat warnings as errors" ON)
option(ADAMANT_FAILPOINTS "Build the failpoints in (services/common/base/failpoint.h)" OFF)
set(ADAMANT_SANITIZE "" CACHE STRING "Sanitizers to build with: empty, address,undefined or thread")
option(ADAMANT_FUZZ "Build the targets of tests/fuzz (clang): all code tells libFuzzer which way it went" OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
# `tools/build PRESET all_verify_interface_header_sets` compiles each header of a library by itself.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

find_program(ADAMANT_CCACHE ccache)
if(ADAMANT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ADAMANT_CCACHE})
endif()

find_program(ADAMANT_LLD ld.lld)
if(ADAMANT_LLD AND NOT ADAMANT_SANITIZE)
  add_link_options(-fuse-ld=lld)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # What messages call a source, and so what ccache holds, does not depend on the folder that the project lies in.
  add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
endif()

set(ADAMANT_WARNINGS -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wextra-semi)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND ADAMANT_WARNINGS -Wthread-safety)
endif()
if(ADAMANT_FUZZ)
  list(APPEND ADAMANT_WARNINGS -Wno-pass-failed)  # sanitizers keep loops from being vectorised
endif()
if(ADAMANT_WERROR)
  list(APPEND ADAMANT_WARNINGS -Werror)
endif()

if(ADAMANT_SANITIZE)
  # PUBLIC by nature: every object of a program must be built with the same sanitizer.
  add_compile_options(-fsanitize=${ADAMANT_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${ADAMANT_SANITIZE})
  if(ADAMANT_SANITIZE MATCHES "undefined")
    # Those that are left out are a quarter of the time to compile. The address sanitizer sees most of what they would.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=null,object-size,vptr)
  endif()
  if(ADAMANT_SANITIZE MATCHES "thread")
    include_directories(BEFORE cmake/tsan)
  endif()
endif()

if(ADAMANT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(ADAMANT_FAILPOINTS)
  add_compile_definitions(ADAMANT_FAILPOINTS)
endif()

# adamant_library(name SRCS ... HDRS ... DEPS ... PRIVATE_DEPS ... [ALONE ...])
# One static library per folder. DEPS are what its headers need, PRIVATE_DEPS what only its sources need. ALONE: sources with
# names of their own that others have too; in unity builds they are compiled by themselves.
function(adamant_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;HDRS;DEPS;PRIVATE_DEPS;ALONE" ${ARGN})
  if(ARG_ALONE)
    set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  if(ARG_SRCS)
    add_library(${name} STATIC)
    target_sources(${name} PRIVATE ${ARG_SRCS})
    set(scope PUBLIC)
    target_compile_options(${name} PRIVATE ${ADAMANT_WARNINGS})
    target_link_libraries(${name} PRIVATE ${ARG_PRIVATE_DEPS})
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_sources(${name} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HDRS})
  target_include_directories(${name} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} ${scope} ${ARG_DEPS})
  if(ARG_SRCS AND BUILD_TESTING)
    adamant_link_test(${name})
  endif()
endfunction()

# A program of all that a library has: it links where the library names all that it needs, whatever others add to theirs.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/link_tests/main.cc CONTENT "int main() { return 0; }\n")
function(adamant_link_test name)
  add_executable(${name}_links ${PROJECT_BINARY_DIR}/link_tests/main.cc)
  set_target_properties(${name}_links PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/link_tests)
  target_link_libraries(${name}_links PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,${name}>)
endfunction()

# What ships, and the benchmarks, each built together by one name.
add_custom_target(product)
add_custom_target(benchmarks)

# adamant_executable(name SRCS ... DEPS ...): a program that ships, under <build>/bin; what is installed.
function(adamant_executable name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_compile_options(${name} PRIVATE ${ADAMANT_WARNINGS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  add_dependencies(product ${name})
  install(TARGETS ${name} RUNTIME)
endfunction()

# adamant_benchmark(name SRCS ... DEPS ...): a Google Benchmark program, under <build>/bench.
function(adamant_benchmark name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench UNITY_BUILD OFF)
  target_compile_options(${name} PRIVATE ${ADAMANT_WARNINGS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark_main)
  add_dependencies(benchmarks ${name})
endfunction()

# adamant_test(name SRCS ... DEPS ... [LABELS ...] [TIMEOUT seconds] [ALONE ...])
# A GoogleTest program, one ctest entry. LABELS default to "unit"; threaded unit tests add "threads" (run under TSan), most
# get "memory" (run under ASan), tests of whole processes are "integration". The target <label>_tests builds all tests of a
# label.
function(adamant_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRCS;DEPS;LABELS;ALONE" ${ARGN})
  if(ARG_ALONE)
    set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  # Those left out would take half the time of that build; they are of one thread that computes values.
  set(without_memory "/(bench|operator|operator/(core|cli|control|kube|kube/schema|local))$")
  if("unit" IN_LIST ARG_LABELS AND NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "${without_memory}")
    list(APPEND ARG_LABELS memory)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)  # ends what hangs; a busy machine may take long
  endif()
  add_executable(${name} ${ARG_SRCS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_compile_options(${name} PRIVATE ${ADAMANT_WARNINGS})
  if(ADAMANT_SANITIZE MATCHES "undefined")  # what they test has it; a quarter of their time to compile
    target_compile_options(${name} PRIVATE -fno-sanitize=undefined)
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  if("simulation" IN_LIST ARG_LABELS)
    set_tests_properties(${name} PROPERTIES COST 90)  # minutes: not at the end, when nothing else runs beside them
  else()
    # Half the time to compile, for some more of the seconds that they run: what they test is optimised, but for templates
    # that they share with it.
    target_compile_options(${name} PRIVATE -O0)
  endif()
  foreach(label IN LISTS ARG_LABELS)
    if(NOT TARGET ${label}_tests)
      add_custom_target(${label}_tests)
    endif()
    add_dependencies(${label}_tests ${name})
  endforeach()
endfunction()
