// How heights are called.
package measures;

  // The width of a measure with its unit.
  function automatic int ⟦measure-width⟧measure_width(int letters);
    return naming::⟦use-label-width⟧label_width(letters) + 1;
  endfunction

endpackage
