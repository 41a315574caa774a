/** Puts a label on a number. */
export function ⟦tag⟧tag(value: number): string {
  return `no. ${value}`;
}
