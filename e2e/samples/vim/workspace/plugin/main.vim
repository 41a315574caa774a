let g:sum = ⟦use-total⟧sums#total(1, 2)
let g:length = ⟦use-length⟧strlen('house')
let g:label = '🎈🎈🎈🎈🎈🎈' . ⟦use-tag⟧label#tag(7)
