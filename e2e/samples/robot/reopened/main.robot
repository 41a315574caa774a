*** Settings ***
Resource    resources/areas.resource

*** Test Cases ***
Areas
    ${total}=    Total Area    1    4
    ${both}=    ⟦use-doubled⟧doubled    ${total}
    Should Be Equal As Integers    ${both}    10

*** Keywords ***
⟦doubled⟧doubled
    [Documentation]    Both halves of a pair.
    [Arguments]    ${value}
    ${both}=    Evaluate    ${value} + ${value}
    RETURN    ${both}
