from abc import ABC, abstractmethod
from typing import List


class Shape(ABC):
    """Anything that covers a part of the plane."""

    @abstractmethod
    def ⟦abstract-area⟧area(self) -> float:
        """The covered area, in square metres."""


def ⟦total-area⟧total_area(shapes: List[Shape]) -> float:
    """Adds up the areas of all shapes."""
    total = 0.0
    for shape in shapes:
        total += shape.area()
    return total
