"""One module for each action, or for each `carrier` of those that name one: `carry_out(action, world, context)`."""
