let g:report = ⟦use-in-report⟧sums#total(4, 5)
