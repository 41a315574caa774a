package geometry;

public final class Main {
    static boolean isFlat(Shape shape) {
        return shape.⟦use-area⟧area() == 0;
    }

    public static void main(String[] arguments) {
        Circle circle = new Circle(1);
        double total = Shape.⟦use-total-area⟧totalArea(circle, new Square(2));
        System.out.println(total + " " + isFlat(circle));
    }
}
