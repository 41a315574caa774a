/** Adds up all numbers. */
export function ⟦total⟧total(...numbers: number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

/** Puts a label on a number. */
export function ⟦tag⟧tag(value: number): string {
  return `no. ${value}`;
}
