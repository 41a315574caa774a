*** Settings ***
Resource    resources/areas.resource

*** Test Cases ***
Areas
    ${total}=    ⟦use-total-area⟧Total Area    1    4
    Should Be Equal As Integers    ${total}    5
