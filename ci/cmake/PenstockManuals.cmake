# Man pages, completions for bash, zsh and fish, and the reference in Markdown. The program writes them from its tables after it is
# built. A build that cannot run the program, or has no commands, makes none.
if(CMAKE_CROSSCOMPILING OR PENSTOCK_FUZZERS OR PENSTOCK_SANITIZE)
  return()
endif()
set(PENSTOCK_MANUALS ${PROJECT_BINARY_DIR}/manuals)
add_custom_command(TARGET penstock POST_BUILD COMMAND penstock --write-manuals ${PENSTOCK_MANUALS} VERBATIM)
install(DIRECTORY ${PENSTOCK_MANUALS}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(DIRECTORY ${PENSTOCK_MANUALS}/reference DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(FILES ${PENSTOCK_MANUALS}/penstock.bash RENAME penstock DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PENSTOCK_MANUALS}/_penstock DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${PENSTOCK_MANUALS}/penstock.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
