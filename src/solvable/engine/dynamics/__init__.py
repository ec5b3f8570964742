"""How descent moves: the student, averages over Gaussian fields, flows, the reduced chain, batches seen again."""
