package geometry;

public class Circle implements Shape {
    private final double radius;

    public Circle(double radius) {
        this.radius = radius;
    }

    @Override
    public double ⟦circle-area⟧area() {
        return 3.14159 * radius * radius;
    }
}
