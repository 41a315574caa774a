module Knock exposing (knock)

import Label


knock : String
knock =
    Label.⟦use-tag⟧tag "toc, toc"
