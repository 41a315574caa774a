include(cmake/Naming.cmake)

#[[ 🧮📐📏🔺🔵🟥🔶🔷🟢🟣🟤🟠 ]] ⟦behind-astral⟧label(title "area")
#[[ 🧮📐📏🔺🔵🟥🔶🔷🟢🟣🟤🟠 ]] ⟦builtin-behind-astral⟧message("${title}")
