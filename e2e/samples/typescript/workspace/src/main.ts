import { Circle } from "./circle";
import { Shape, ⟦import-in-main⟧totalArea } from "./shape";
import { Square } from "./square";

const shapes: ⟦use-shape⟧Shape[] = [new Circle(1), new Square(2)];

export const total = ⟦use-total-area⟧totalArea(shapes);
