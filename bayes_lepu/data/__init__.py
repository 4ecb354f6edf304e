"""The one door, and what came through it: rows, labels of annotators, weights, parts."""
