export const nothing = 0;

/** Adds up all numbers. */
export function ⟦total⟧total(...numbers: number[]): number {
  return numbers.reduce((sum, number) => sum + number, nothing);
}
