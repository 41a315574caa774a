from geometry.circle import Circle
from geometry.shape import Shape, total_area
from geometry.square import Square


def ⟦doubled⟧doubled(value: float) -> float:
    """Both halves of a pair."""
    return value + value


def largest(first: Shape, second: Shape) -> Shape:
    return first if first.area() > second.area() else second


print(⟦use-doubled⟧doubled(total_area([Circle(1), Square(2)])))
