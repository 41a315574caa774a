export function ⟦knock⟧knock(): string {
  return "toc, toc";
}
