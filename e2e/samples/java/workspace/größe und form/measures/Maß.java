package measures;

import geometry.Naming;

public final class Maß {
    /** The height as people say it. */
    public static String ⟦measure⟧measure(double height) {
        return Naming.⟦use-label⟧label(height + " metres");
    }
}
