import { Circle } from "./circle.ts";
import { Shape, totalArea } from "./shape.ts";
import { Square } from "./square.ts";

/** Both halves of a pair. */
function ⟦doubled⟧doubled(value: number): number {
  return value + value;
}

function isFlat(shape: Shape): boolean {
  return shape.area() === 0;
}

const circle = new Circle(1);
const square = new Square(2);

export const flat = isFlat(circle) || isFlat(square);

export const total = ⟦use-doubled⟧doubled(totalArea([circle, square]));
