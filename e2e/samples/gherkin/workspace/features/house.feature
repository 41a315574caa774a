Feature: A house

  Scenario: It has rooms
    Given ⟦use-rooms⟧a house with 4 rooms
