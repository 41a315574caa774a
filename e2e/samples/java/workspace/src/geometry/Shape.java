package geometry;

/** Anything that covers a part of the plane. */
public interface Shape {
    /** The covered area, in square metres. */
    double area();

    /** Adds up the areas of both shapes. */
    static double ⟦total-area⟧totalArea(Shape first, Shape second) {
        return first.area() + second.area();
    }
}
