import { Circle } from "./circle.ts";
import { perimeter } from "./forme étrange/carré long.ts";
import { ⟦import-tag⟧tag } from "./label.ts";
import { Shape, ⟦import-in-main⟧totalArea } from "./shape.ts";
import { Square } from "./square.ts";

function isFlat(shape: ⟦use-shape⟧Shape): boolean {
  return shape.area() === 0;
}

const circle = new Circle(1);
const square = new Square(2);

export const flat = isFlat(circle) || isFlat(square);

export const total = ⟦use-total-area⟧totalArea([circle, square]);

export const around = ⟦use-perimeter⟧perimeter(2);

export const label = "🎈🎈🎈🎈🎈🎈" + ⟦use-tag⟧tag(7);
