package geometry;

public final class Main {
    /** Both halves of a pair. */
    static double ⟦doubled⟧doubled(double value) {
        return value + value;
    }

    static boolean isFlat(Shape shape) {
        return shape.area() == 0;
    }

    public static void main(String[] arguments) {
        Circle circle = new Circle(1);
        double total = ⟦use-doubled⟧doubled(Shape.totalArea(circle, new Square(2)));
        System.out.println(total + " " + isFlat(circle));
    }
}
