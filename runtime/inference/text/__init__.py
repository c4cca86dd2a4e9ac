"""Text generation: weights, graph, tokens, sampling and the scheduler of slots."""
