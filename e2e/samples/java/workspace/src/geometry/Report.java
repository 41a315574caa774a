package geometry;

import measures.Maß;

public final class Report {
    static double twoCircles() {
        return Shape.⟦use-in-report⟧totalArea(new Circle(1), new Circle(2));
    }

    static String heading() {
        return Naming.⟦use-label⟧label("two circles");
    }

    static String height() {
        return Maß.⟦use-measure⟧measure(1.5);
    }
}
