# lk_library(NAME SRCS a.cc … DEPS x y …): one static library per layer.
# lk_test(NAME LABEL unit|sequence|integration|e2e TIMEOUT s SRCS … DEPS …): one GoogleTest program.
# Dependencies point one way: reconcilers -> controller -> api/transport -> api/types -> api/base.
function(lk_library name)
  cmake_parse_arguments(A "" "" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${A_SRCS})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${A_DEPS} PRIVATE lk_warnings ${A_PRIVATE_DEPS})
endfunction()

function(lk_test name)
  if(NOT LK_TESTS)
    return()
  endif()
  cmake_parse_arguments(A "" "LABEL;TIMEOUT" "SRCS;DEPS;ARGS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${A_SRCS})
  target_link_libraries(${name} PRIVATE lk_warnings ${A_DEPS} GTest::gtest GTest::gtest_main)
  add_dependencies(lk_tests ${name})
  add_test(NAME ${name} COMMAND ${name} ${A_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS "${A_LABEL}" TIMEOUT "${A_TIMEOUT}")
endfunction()
