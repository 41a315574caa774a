" Both halves of a pair.
function! ⟦doubled⟧Doubled(value) abort
  return a:value + a:value
endfunction

let g:sum = ⟦use-doubled⟧Doubled(sums#total(1, 2))
