/** Anything that covers a part of the plane. */
export interface Shape {
  /** The covered area, in square metres. */
  area(): number;
}

/** Adds up the areas of all shapes. */
export function ⟦total-area⟧totalArea(shapes: Shape[]): number {
  let sum = 0;
  for (const shape of shapes) {
    sum += shape.area();
  }
  return sum;
}
