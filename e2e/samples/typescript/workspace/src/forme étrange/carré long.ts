/** The way around a square, in metres. */
export function ⟦perimeter⟧perimeter(side: number): number {
  return 4 * side;
}
