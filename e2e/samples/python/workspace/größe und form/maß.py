from geometry.naming import label


def ⟦measure⟧measure(height: float) -> str:
    """The height as people say it."""
    return ⟦use-label⟧label(f"{height} metres")


MEASURES = [⟦use-measure⟧measure(1.5)]
