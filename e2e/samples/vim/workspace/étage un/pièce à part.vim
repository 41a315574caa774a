function! ⟦knock⟧Knock() abort
  return 'toc, toc'
endfunction

echo ⟦use-knock⟧Knock()
