from geometry.naming import label

TITLES = ["🧮📐📏🔺🔵🟥", ⟦behind-astral⟧label("area")]
