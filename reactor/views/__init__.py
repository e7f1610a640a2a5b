"""What commands and the page show: read from the bus, as plain values. How it is printed is the reader's own."""
