Feature: A garden

  Scenario: It has a label
    Given the label "🎈🎈🎈🎈🎈🎈" on ⟦use-label⟧the door
