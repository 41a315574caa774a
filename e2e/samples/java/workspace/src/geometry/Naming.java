package geometry;

public final class Naming {
    /** The name as it is printed. */
    public static String ⟦label⟧label(String name) {
        return name.trim();
    }
}
