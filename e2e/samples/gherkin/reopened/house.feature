Feature: A house

  Scenario: It has walls
    Given ⟦use-doubled⟧walls that are doubled
