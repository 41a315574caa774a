// How things are called.
package naming;

  // How many letters a label has room for.
  function automatic int ⟦label-width⟧label_width(int letters);
    return letters + 2;
  endfunction

endpackage
