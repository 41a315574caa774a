Feature: A room apart

  Scenario: It is one room
    Given ⟦use-rooms⟧a house with 1 rooms
