import { Circle } from "./circle";
import { Shape, totalArea } from "./shape";
import { Square } from "./square";

/** Both halves of a pair. */
function ⟦doubled⟧doubled(value: number): number {
  return value + value;
}

const shapes: Shape[] = [new Circle(1), new Square(2)];

export const total = totalArea(shapes);

export const twice = ⟦use-doubled⟧doubled(total);
