from geometry.circle import Circle
from geometry.shape import Shape, ⟦import-in-main⟧total_area
from geometry.square import Square


def largest(first: Shape, second: Shape) -> Shape:
    return first if first.⟦use-area⟧area() > second.area() else second


print(⟦use-total-area⟧total_area([Circle(1), Square(2)]))
