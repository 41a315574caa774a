package geometry;

public final class Naming {
    /** What stands between two names. */
    public static final String SEPARATOR = ", ";

    /** The name as it is printed. */
    public static String ⟦label⟧label(String name) {
        return name.trim() + SEPARATOR;
    }
}
