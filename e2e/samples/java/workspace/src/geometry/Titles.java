package geometry;

public final class Titles {
    static final String[] TITLES = {"🧮📐📏🔺🔵🟥🔶🔷", Naming.⟦behind-astral⟧label("area")};
}
