from geometry.shape import Shape


class Square(Shape):
    def __init__(self, side: float) -> None:
        self.side = side

    def ⟦square-area⟧area(self) -> float:
        return self.side * self.side
