from geometry.shape import Shape


class Circle(Shape):
    def __init__(self, radius: float) -> None:
        self.radius = radius

    def ⟦circle-area⟧area(self) -> float:
        return 3.14159 * self.radius * self.radius
