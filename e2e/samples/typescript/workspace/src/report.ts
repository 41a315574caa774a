import { Circle } from "./circle";
import { ⟦import-in-report⟧totalArea } from "./shape";

export function report(): string {
  return `two circles: ${⟦use-in-report⟧totalArea([new Circle(1), new Circle(2)])}`;
}
