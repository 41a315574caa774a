export interface Shape {
  area(): number;
}

export class Circle implements Shape {
  area(): number {
    return 3;
  }
}

/** Adds up all numbers. */
export function ⟦total⟧total(numbers: number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}
