# lk_library(NAME SRCS a.cc … DEPS x y … PRIVATE_DEPS …): one static library per layer.
# lk_program(NAME SRCS … DEPS …): a program of the product, in the build folder's root, and installed.
# lk_test(NAME [TSAN] LABEL unit|sequence|integration|e2e|nightly TIMEOUT s SRCS … DEPS … ARGS …): one GoogleTest program.
# lk_bench(NAME SRCS … DEPS …): a benchmark, a program with a main of its own (or benchmark::benchmark_main in DEPS).
# Dependencies point one way: reconcilers -> controller -> api/transport -> api/types -> api/base.

# The folders below tests/ whose programs also run under ThreadSanitizer, the runtime and the front; a program elsewhere
# says TSAN.
set(LK_TSAN_AREAS base transport controller front)

# The precompiled header of the product, and the one of the tests with gtest in it. A target that needs other
# definitions than those is left without (NO_PCH).
if(LK_PCH)
  file(WRITE ${PROJECT_BINARY_DIR}/pch/empty.cc "")
  add_library(lk_pch OBJECT ${PROJECT_BINARY_DIR}/pch/empty.cc)
  target_include_directories(lk_pch PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(lk_pch PRIVATE lk_warnings)
  target_precompile_headers(lk_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)
  if(LK_TESTS)
    add_library(lk_test_pch OBJECT ${PROJECT_BINARY_DIR}/pch/empty.cc)
    target_include_directories(lk_test_pch PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(lk_test_pch PRIVATE lk_warnings GTest::gtest)
    target_precompile_headers(lk_test_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.h <gtest/gtest.h>)
  endif()
endif()
function(lk_use_pch name pch no_pch)
  if(LK_PCH AND NOT no_pch)
    target_precompile_headers(${name} REUSE_FROM ${pch})
  endif()
endfunction()

function(lk_library name)
  cmake_parse_arguments(A "NO_PCH" "" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${A_SRCS})
  lk_use_pch(${name} lk_pch "${A_NO_PCH}")
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${A_DEPS} PRIVATE lk_warnings ${A_PRIVATE_DEPS})
endfunction()

function(lk_program name)
  cmake_parse_arguments(A "NO_PCH" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${A_SRCS})
  lk_use_pch(${name} lk_pch "${A_NO_PCH}")
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE lk_warnings ${A_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

function(lk_test name)
  if(NOT LK_TESTS)
    return()
  endif()
  cmake_parse_arguments(A "NO_PCH;TSAN" "LABEL;TIMEOUT" "SRCS;DEPS;ARGS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${A_SRCS})
  lk_use_pch(${name} lk_test_pch "${A_NO_PCH}")
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE lk_warnings ${A_DEPS} GTest::gtest GTest::gtest_main)
  add_dependencies(lk_tests ${name})
  # scripts/test.sh counts the cases from these.
  add_test(NAME ${name}
    COMMAND ${name} --gtest_output=xml:${PROJECT_BINARY_DIR}/test-results/${name}.xml ${A_ARGS})
  get_filename_component(area ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(labels ${A_LABEL} ${area})
  if(A_TSAN OR area IN_LIST LK_TSAN_AREAS)
    list(APPEND labels tsan)
    add_dependencies(lk_tsan_tests ${name})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT "${A_TIMEOUT}")
endfunction()

function(lk_bench name)
  if(NOT LK_BENCH)
    return()
  endif()
  cmake_parse_arguments(A "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${A_SRCS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE lk_warnings ${A_DEPS})
  add_dependencies(lk_benches ${name})
  set_property(GLOBAL APPEND_STRING PROPERTY LK_BENCH_LINES "${name} $<TARGET_FILE:${name}>\n")
endfunction()

# A target check_headers that compiles each header on its own: one that leans on what its users happen to include
# before it fails here. A header that a source of the product includes first has its proof in that source already.
function(lk_check_headers)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/api/*.h ${PROJECT_SOURCE_DIR}/controller/*.h ${PROJECT_SOURCE_DIR}/reconcilers/*.h
    ${PROJECT_SOURCE_DIR}/tests/*.h)
  file(GLOB_RECURSE users CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/api/*.cc ${PROJECT_SOURCE_DIR}/controller/*.cc ${PROJECT_SOURCE_DIR}/reconcilers/*.cc)
  foreach(user IN LISTS users)
    file(STRINGS ${user} first REGEX "^#include " LIMIT_COUNT 1)
    if(first MATCHES "\"(.*)\"")
      list(REMOVE_ITEM headers ${CMAKE_MATCH_1})
    endif()
  endforeach()
  set(sources)
  foreach(header IN LISTS headers)
    string(MAKE_C_IDENTIFIER ${header} id)
    set(source ${PROJECT_BINARY_DIR}/check_headers/${id}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(check_headers OBJECT EXCLUDE_FROM_ALL ${sources})
  target_include_directories(check_headers PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(check_headers PRIVATE lk_warnings)
  if(TARGET GTest::gtest)
    target_link_libraries(check_headers PRIVATE GTest::gtest)
  endif()
endfunction()
