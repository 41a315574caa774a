export const nothing = 0;

/**
 * Adds up all numbers.
 *
 * @param {number[]} numbers
 */
export function ⟦total⟧total(...numbers) {
  return numbers.reduce((sum, number) => sum + number, nothing);
}
