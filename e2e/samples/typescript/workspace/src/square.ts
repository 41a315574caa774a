import { Shape } from "./shape.ts";

export class ⟦square⟧Square implements Shape {
  constructor(private readonly side: number) {}

  area(): number {
    return this.side * this.side;
  }
}
