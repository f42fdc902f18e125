"""Values to privatize: their columns, their positions in the domain, and the files of reports made from them."""
