/**
 * Adds up all numbers.
 *
 * @param {number[]} numbers
 */
export function ⟦total⟧total(...numbers) {
  return numbers.reduce((sum, number) => sum + number, 0);
}

/**
 * Puts a label on a number.
 *
 * @param {number} value
 */
export function ⟦tag⟧tag(value) {
  return `no. ${value}`;
}
