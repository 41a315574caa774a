from geometry.circle import Circle
from geometry.naming import label
from geometry.shape import ⟦import-in-report⟧total_area


def report() -> str:
    area = ⟦use-in-report⟧total_area([Circle(1), Circle(2)])
    return ⟦use-label⟧label(f"two circles: {area}")
