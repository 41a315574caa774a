<?php

function ⟦knock⟧knock(): string
{
    return "toc, toc";
}
