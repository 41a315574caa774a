import { Circle } from "./circle";
import { Shape, ⟦import-in-main⟧totalArea } from "./shape";
import { Square } from "./square";

function isFlat(shape: ⟦use-shape⟧Shape): boolean {
  return shape.area() === 0;
}

const circle = new Circle(1);
const square = new Square(2);

export const flat = isFlat(circle) || isFlat(square);

export const total = ⟦use-total-area⟧totalArea([circle, square]);
