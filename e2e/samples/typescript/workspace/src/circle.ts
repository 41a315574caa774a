import { Shape } from "./shape.ts";

export class ⟦circle⟧Circle implements Shape {
  constructor(private readonly radius: number) {}

  area(): number {
    return 3.14159 * this.radius * this.radius;
  }
}
