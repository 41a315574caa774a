export function ⟦knock⟧knock() {
  return "toc, toc";
}
