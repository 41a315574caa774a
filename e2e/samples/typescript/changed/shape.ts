/** Anything that covers a part of the plane. */
export interface Shape {
  /** The covered area, in square metres. */
  area(): number;
}

/** The area of nothing. */
export const nothing = 0;

/** Adds up the areas of all shapes. */
export function ⟦total-area⟧totalArea(shapes: Shape[]): number {
  return shapes.reduce((sum, shape) => sum + shape.area(), nothing);
}
