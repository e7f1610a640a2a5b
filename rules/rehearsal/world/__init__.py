"""Rules in an invented world, with every promise checked: `reactor simulate --world`."""
