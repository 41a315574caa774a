*** Settings ***
Resource    resources/areas.resource
Resource    resources/naming.resource
Resource    größe und form/maß.resource

*** Test Cases ***
Report
    ${area}=    ⟦use-in-report⟧Total Area    2    3
    ⟦use-label⟧Print Label    ${area}
    ⟦use-measure⟧Print Measure    2
