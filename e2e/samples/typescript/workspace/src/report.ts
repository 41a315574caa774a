import { Circle } from "./circle.ts";
import { ⟦import-in-report⟧totalArea } from "./shape.ts";

export function report(): string {
  return `two circles: ${⟦use-in-report⟧totalArea([new Circle(1), new Circle(2)])}`;
}
