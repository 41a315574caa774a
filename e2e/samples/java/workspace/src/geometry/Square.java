package geometry;

public class Square implements Shape {
    private final double side;

    public Square(double side) {
        this.side = side;
    }

    @Override
    public double ⟦square-area⟧area() {
        return side * side;
    }
}
