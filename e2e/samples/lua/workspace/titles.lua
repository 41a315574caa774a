local naming = require("naming")

return { "🧮📐📏🔺🔵🟥🔶🔷", naming.⟦behind-astral⟧label("area") }
