" Puts a label on a number.
function! ⟦tag⟧label#tag(value) abort
  return 'no. ' . a:value
endfunction
