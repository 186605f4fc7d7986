# Compiles up to eight neighbouring sources of a component's library as one (PENSTOCK_UNITY), because headers take most of a build's
# time. A new name in an unnamed namespace must differ from the names in its folder (ci/check_layers). `dev` compiles each file alone,
# so that each has to include what it uses (.ci/run --full).
option(PENSTOCK_UNITY "Compile neighbouring sources of a library together: less time for a whole build" OFF)

# penstock_apart(SOURCE...): sources of the current component that are compiled alone. These are plug-ins (each has its own `kOptions`),
# sources whose names collide with those of their folder, arithmetic with options of its own, and sources that need the registry of
# commands or of views: tests link their neighbours without it.
function(penstock_apart)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${PENSTOCK_COMPONENT} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# penstock_unity(): groups the sources of all components' libraries. Called once all of them are known.
function(penstock_unity)
  if(NOT PENSTOCK_UNITY)
    return()
  endif()
  get_property(libraries GLOBAL PROPERTY PENSTOCK_COMPONENTS)
  foreach(library IN LISTS libraries)
    get_target_property(sources ${library} SOURCES)
    get_target_property(folder ${library} SOURCE_DIR)
    set(together "")
    foreach(source IN LISTS sources)
      get_filename_component(path ${source} ABSOLUTE BASE_DIR ${folder})
      get_source_file_property(apart ${path} TARGET_DIRECTORY ${library} SKIP_UNITY_BUILD_INCLUSION)
      if(path MATCHES "\\.cpp$" AND NOT apart)
        list(APPEND together ${path})
      endif()
    endforeach()
    list(SORT together)
    set(last "")
    foreach(path IN LISTS together)
      get_filename_component(where ${path} DIRECTORY)
      if(NOT where STREQUAL last)
        set(count 0)
        set(last ${where})
      endif()
      file(RELATIVE_PATH group ${PROJECT_SOURCE_DIR} ${where})
      math(EXPR batch "${count} / 8")
      math(EXPR count "${count} + 1")
      string(MAKE_C_IDENTIFIER "${group}_${batch}" group)
      set_source_files_properties(${path} TARGET_DIRECTORY ${library} PROPERTIES UNITY_GROUP ${group})
    endforeach()
    set_target_properties(${library} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # it takes an included source's own types for those of a header
      target_compile_options(${library} PRIVATE -Wno-subobject-linkage)
    endif()
  endforeach()
endfunction()
