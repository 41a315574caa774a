export interface Shape {
  /** The covered area, in square metres. */
  area(): number;
}

export class ⟦circle⟧Circle implements Shape {
  area(): number {
    return 3;
  }
}

export class ⟦square⟧Square implements Shape {
  area(): number {
    return 4;
  }
}

/** Adds up all numbers. */
export function ⟦total⟧total(numbers: number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}
