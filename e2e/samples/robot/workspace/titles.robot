*** Settings ***
Resource    resources/naming.resource

*** Test Cases ***
Titles
    Run Keywords    Log    🧮📐📏🔺🔵🟥🔶🔷🟢🟣🟤🟠    AND    ⟦behind-astral⟧Print Label    area
