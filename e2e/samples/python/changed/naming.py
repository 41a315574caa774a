"""How shapes are called."""

SEPARATOR = ", "


def ⟦label⟧label(name: str) -> str:
    """The name as it is printed."""
    return name.strip().title()
