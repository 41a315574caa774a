from geometry.circle import Circle
from geometry.shape import ⟦import-in-report⟧total_area


def report() -> str:
    area = ⟦use-in-report⟧total_area([Circle(1), Circle(2)])
    return f"two circles: {area}"
