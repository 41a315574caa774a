" The sum of nothing.
let sums#nothing = 0

" Adds up two numbers.
function! ⟦total⟧sums#total(one, other) abort
  return a:one + a:other
endfunction
